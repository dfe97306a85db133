"""What editors show."""
