"""The policy server: the engine, the built-in policies, and the HTTPS server in front of them."""
