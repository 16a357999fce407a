"""Mirror: topics of one cluster of Kafka into another, or into other topics of the same."""
