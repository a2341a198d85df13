"""Model formats other than XGBoost, LightGBM and scikit-learn, and compositions of scikit-learn estimators."""
