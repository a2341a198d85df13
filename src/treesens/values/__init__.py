"""Values inside cells: chosen so that relations hold, compared, counted, and judged as witnesses (docs/adr/0023)."""
