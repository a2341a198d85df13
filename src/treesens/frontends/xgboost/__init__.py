"""XGBoost: JSON and UBJSON files, live boosters."""
