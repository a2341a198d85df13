"""The conformance kit for backends; ships with the package."""
