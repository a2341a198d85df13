"""Training within a budget: after every round a proof shows that the swing of some features stays within the budget."""
