"""SparkSource: what Spark reads, as records."""
