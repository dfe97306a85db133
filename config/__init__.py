"""What a person writes: settings, API types of policies and custom resources, and the YAML made from them."""
