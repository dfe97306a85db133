"""What a review costs Gatewright, beside the same decisions in Go (`python -m benchmarks.reviews`)."""
