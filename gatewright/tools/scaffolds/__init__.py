"""The files that `gatewright scaffold` writes."""
