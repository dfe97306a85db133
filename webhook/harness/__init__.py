"""Judge files as the server judges reviews: manifests, and cases that say what should come of it."""
