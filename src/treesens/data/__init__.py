"""Tables, and what is learnt from them: marginals, cavities, nearest rows, flips."""
