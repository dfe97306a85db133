"""The commands: a module each, with a click command named `command`."""
