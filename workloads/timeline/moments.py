"""Moments of a timeline, which are seconds since 1970, as moments and words. Pure."""

from datetime import UTC, datetime


def to_moment(at: float) -> datetime:
    """Return the moment of so many seconds."""
    return datetime.fromtimestamp(at, UTC)


def format_exact(at: float) -> str:
    """Write a moment exactly, in UTC."""
    return f"{to_moment(at):%-d %b %Y, %H:%M:%S UTC}"
