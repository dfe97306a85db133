"""Moments as the API writes them: always UTC."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Write a Time: whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """Write a MicroTime: microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
