"""What commands share at a terminal: `options` made from the settings, and `terminal` output."""
