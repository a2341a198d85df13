"""Tables, and quantities learnt from them: marginals, cavities, nearest rows, flips."""
