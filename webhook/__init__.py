"""The policy server: an engine that judges, the policies it knows, and the rim that speaks HTTP."""
