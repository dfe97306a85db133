"""What things cost, beside a floor measured in the same run: read the ratios, not the figures."""
