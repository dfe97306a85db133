"""The cost of a review, compared with the same decisions in Go (`python -m benchmarks.reviews`)."""
