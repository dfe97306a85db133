"""Shared by commands: `options` of settings and charts, and output on a `terminal`."""
