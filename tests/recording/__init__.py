"""The picture in the README: commands of a real run and their output, as an SVG."""
