"""Floor 4: what is learnt from data: marginals, cavities, nearest rows."""
