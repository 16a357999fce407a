"""What happens to records: Arrow batch in, Arrow batch out; no Kafka, no Spark."""
