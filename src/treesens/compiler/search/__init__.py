"""The native engine as the compiler sees it: modules as flat arrays, and the solver over them."""
