"""What the leader does for the webhook, which has no write rights."""
