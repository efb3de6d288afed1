"""What a person is told in the notebook, without a traceback."""

from __future__ import annotations


class NotebookError(Exception):
    """A sentence or two: what happened, why, and what to do."""
