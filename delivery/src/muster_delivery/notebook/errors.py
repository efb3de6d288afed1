"""What a person is told in the notebook, without a traceback."""

from __future__ import annotations


class NotebookError(Exception):
    """A sentence or two: what happened, why, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows of it: where in our code it was raised helps nobody."""
        return [str(self)]
