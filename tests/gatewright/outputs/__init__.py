"""Output formats: each shows the whole report, escaped, and valid for its readers."""
