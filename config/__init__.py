"""User input: settings, API types of policies and custom resources, and the YAML generated from them."""
