"""The id of the request that is being answered: its answer carries it, the pages of what went wrong
show it, and every log line has it.
"""

import logging
import re
import uuid
from contextvars import ContextVar

HEADER = "X-Request-ID"
_GOOD = re.compile(r"[A-Za-z0-9._-]{1,64}")

request_id: ContextVar[str] = ContextVar("muster_request_id", default="")


def chosen(given: str) -> str:
    """The id that a proxy or a client gave, where it is a plain one; else a new one."""
    return given if _GOOD.fullmatch(given) else uuid.uuid4().hex


class Formatter(logging.Formatter):
    """Lines that were written for a request end with its id."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{line} [request {found}]" if (found := request_id.get()) else line
