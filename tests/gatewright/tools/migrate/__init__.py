"""Policies of other tools, converted."""
