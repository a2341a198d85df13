"""CatBoost models."""
