"""Models that Apache Spark has saved."""
