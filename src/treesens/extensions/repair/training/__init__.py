"""Training within a budget: after every round it is proved that the swing of some features stays within the budget."""
