"""Shared by commands: `options` of settings, `chart_options`, and output on a `terminal`."""
