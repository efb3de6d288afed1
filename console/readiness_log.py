"""Keeps the log readable while somebody waits for `/readyz`."""

import logging


class ReadinessFilter(logging.Filter):
    """Drops the error that Django logs for each 503 of `/readyz`.

    That is an answer and no fault, and whoever waits for a start asks several times a second. The
    view logs each change.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is to be logged."""
        path = getattr(getattr(record, "request", None), "path", "")
        return path != "/readyz" or record.exc_info is not None
