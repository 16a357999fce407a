"""What a task does: sources and sinks, written against ports; neither Spark nor a Kafka client here."""
