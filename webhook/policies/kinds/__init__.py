"""The rules of Gatewright's own kinds, which are always in force."""
