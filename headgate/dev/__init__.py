"""What development needs beside the package: Java, jars, and a one-node broker for examples, tests and benchmarks."""
