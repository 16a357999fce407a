"""The registry's formats by columns: numpy reads and writes one value of all records at a time."""
