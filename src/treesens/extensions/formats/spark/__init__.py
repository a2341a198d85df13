"""Models saved by Apache Spark."""
