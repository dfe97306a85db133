"""Policy sets: what people write about policies, and how it comes into force. Pure."""
