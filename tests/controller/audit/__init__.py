"""The audit: what it reads, reports and leaves alone, and reports as other tools read them."""
