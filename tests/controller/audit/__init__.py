"""The audit: which objects it reads, which reports it writes, and how other tools read the reports."""
