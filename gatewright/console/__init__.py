"""What commands share: `options` of settings, `chart_options`, and output on a `terminal`."""
