"""The scripts of `benchmarks`: they start, and answer on models of three trees."""
