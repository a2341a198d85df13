"""The native engine as a backend: modules as flat arrays, the solver that reads them, and the passes that use the engine."""
