"""The compiler: from a typed question to constraints and back."""
