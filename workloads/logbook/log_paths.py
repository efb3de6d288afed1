"""Paths of logs: one file for each run of a container, and its index beside it.

Names come from a cluster, so they are checked.
"""

import os
import re
import uuid
from pathlib import Path

from django.conf import settings

NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PATH = re.compile(
    rf"[0-9a-f-]{{36}}/{NAME_PATTERN.pattern}/{NAME_PATTERN.pattern}\.\d{{1,9}}\.log"
)
NEARLY_FULL = 64 << 20
"""Bytes left on the disk below which it is reported as full."""


class BadLogPath(ValueError):
    """A name that no container or pod has, and that must not become a path."""


def logs_root() -> Path:
    """Return the folder of all logs."""
    return Path(settings.OPTIONS.data_dir) / "logs"


def build_log_path(workload: uuid.UUID, pod_uid: str, container: str, run: int) -> str:
    """Return the path of a log below `logs_root()`. Raises BadLogPath."""
    path = f"{workload}/{pod_uid}/{container}.{run}.log"
    check_path(path)
    return path


def check_path(path: str) -> str:
    """Return the path if `build_log_path` makes such paths. Raises BadLogPath."""
    if not _PATH.fullmatch(path) or ".." in path:
        raise BadLogPath("this is not the name of a log")
    return path


def local_path(path: str) -> Path:
    """Return where the file is, or would be, on this machine. Raises BadLogPath."""
    return logs_root() / check_path(path)


def index_path(path: Path) -> Path:
    """Return the path of a log's index."""
    return path.with_suffix(".idx")


def describe_trouble() -> str:
    """Describe what is wrong with the disk for logs; "" while all is well."""
    folder = logs_root()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return f"The place for logs cannot be read: {error.strerror}."
    if disk.f_bavail * disk.f_frsize < NEARLY_FULL:
        return (
            "The disk for logs is full: nothing more is captured until there is room. Workloads "
            "run on."
        )
    return ""
