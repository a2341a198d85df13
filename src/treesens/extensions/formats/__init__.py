"""Model formats other than those of XGBoost, LightGBM and scikit-learn, and compositions of scikit-learn estimators."""
