"""Training within a budget: after every round the swing of some features is proved to be within it."""
