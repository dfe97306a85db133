"""The picture in the README: commands of a real run, and what they print, as an SVG."""
