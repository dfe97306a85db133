"""What the controller would create, and the differences from a cluster."""
