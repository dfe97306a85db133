"""Policy pages and JSON Schemas."""
