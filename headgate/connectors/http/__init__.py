"""HTTP: records of a REST API, and records sent to one."""
