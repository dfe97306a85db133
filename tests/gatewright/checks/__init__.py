"""check and impact: verdicts on files and on clusters, reports, fixes."""
