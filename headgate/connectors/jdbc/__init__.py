"""Databases, by their own JDBC drivers in the driver JVM and on the executors."""
