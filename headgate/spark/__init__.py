"""The engine: the session and what runs on its executors; alone with PySpark."""
