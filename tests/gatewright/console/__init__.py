"""Options that commands share, and output for people."""
