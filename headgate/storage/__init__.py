"""What must outlive a process, and what Kafka keeps for us."""
