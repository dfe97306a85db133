"""The processes: their parts, listeners, logs, memory, the user they act as."""
