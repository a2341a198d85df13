"""Values inside cells: chosen to satisfy relations, compared, counted, and verified as witnesses."""
