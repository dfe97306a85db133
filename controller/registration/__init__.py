"""What the leader keeps right for the webhook: its certificates, its registration, and what policy objects say."""
