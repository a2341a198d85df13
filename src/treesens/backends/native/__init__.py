"""The native engine as a backend: modules as flat arrays, the solver over them, and the passes that use it."""
