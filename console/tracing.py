"""The id of the request that is being answered: in its answer, error pages and log lines."""

import logging
import re
import uuid
from contextvars import ContextVar

REQUEST_ID_HEADER = "X-Request-ID"
_GOOD = re.compile(r"[A-Za-z0-9._-]{1,64}")

request_id: ContextVar[str] = ContextVar("muster_request_id", default="")


def choose_request_id(given_id: str) -> str:
    """Return the given id of a proxy or a client if it is a plain one; else a new one."""
    return given_id if _GOOD.fullmatch(given_id) else uuid.uuid4().hex


class RequestIdFormatter(logging.Formatter):
    """A log formatter that ends lines with the id of the request they were written for."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{line} [request {current_id}]" if (current_id := request_id.get()) else line
