"""Models that Apache Spark has saved, as zip files."""
