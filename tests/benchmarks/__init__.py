"""The benchmark of reviews measures right verdicts, and writes its tables. Times are not tested."""
