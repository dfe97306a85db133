"""The processes: their parts, listeners, logs and memory, and the user that they act as."""
