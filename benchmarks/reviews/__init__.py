"""The cost of a review in Gatewright, compared with the same decisions in Go (`python -m benchmarks.reviews`)."""
