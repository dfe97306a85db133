"""The report of `gatewright test`, its record of failed cases, and its reruns on changes."""
