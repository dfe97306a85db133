"""Pages about policies, and JSON Schemas for editors."""
