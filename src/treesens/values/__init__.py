"""Values inside cells: chosen to satisfy relations, compared, counted, and judged as witnesses (docs/adr/0023)."""
