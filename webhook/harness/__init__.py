"""Judge files with the code of the webhook: manifests, and test cases with expected answers."""
