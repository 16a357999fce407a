"""SparkSink: records as rows, written with Spark."""
