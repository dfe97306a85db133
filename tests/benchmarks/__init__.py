"""The benchmark of reviews checks its verdicts and writes its tables. Times are not tested."""
