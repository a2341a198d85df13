"""From syntax trees to typed questions: names, units and domains are resolved against models and tables."""
