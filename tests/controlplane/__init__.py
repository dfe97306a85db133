"""A real Kubernetes control plane for tests, from binaries or built from Go modules: see `plane.ControlPlane`."""
