"""Tables, and quantities learnt from tables: marginals, cavities, flips."""
