"""Results of `gatewright test`, its record of failed cases, its reruns, and new files of cases."""
