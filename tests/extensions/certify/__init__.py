"""Certificates: tiny models from XGBoost itself, and the truth of statements by brute force."""
