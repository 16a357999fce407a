"""Source tasks: poll, through the pipeline, to Kafka, then the offsets."""
