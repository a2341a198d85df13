"""Writers of solver formats; no solver has to be installed."""
