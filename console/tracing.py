"""The id of the request that is being answered: its answer carries it, the pages of what went wrong
show it, and every log line has it.
"""

import logging
import re
import uuid
from contextvars import ContextVar

REQUEST_ID_HEADER = "X-Request-ID"
_GOOD = re.compile(r"[A-Za-z0-9._-]{1,64}")

request_id: ContextVar[str] = ContextVar("muster_request_id", default="")


def choose_request_id(given_id: str) -> str:
    """The id that a proxy or a client gave, where it is a plain one; else a new one."""
    return given_id if _GOOD.fullmatch(given_id) else uuid.uuid4().hex


class RequestIdFormatter(logging.Formatter):
    """Lines that were written for a request end with its id."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{line} [request {found}]" if (found := request_id.get()) else line
