"""What `gatewright test` does beside judging: its report, the cases that failed last, reruns."""
