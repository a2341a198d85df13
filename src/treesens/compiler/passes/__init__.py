"""Floor 3: one small file per rewrite."""
