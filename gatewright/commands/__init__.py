"""The commands: one module each, with a click command of its name."""
