"""What the leader does for the webhook: certificates, registration, CRD conversion and the status of policy objects."""
