"""Where logs lie: one file for each run of a container, and its index beside it. Names come from a
cluster, so they are checked.
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
"""Bytes that are left on the disk when people are told."""


class BadLogPath(ValueError):
    """A name that no container or pod has, and that must not become a path."""


def logs_root() -> Path:
    """The folder of all logs."""
    return Path(settings.OPTIONS.data_dir) / "logs"


def build_log_path(workload: uuid.UUID, pod_uid: str, container: str, run: int) -> str:
    """The path of a log below `root()`. Raises BadPlace."""
    path = f"{workload}/{pod_uid}/{container}.{run}.log"
    check_path(path)
    return path


def check_path(path: str) -> str:
    """The path, if it is one that `place` makes. Raises BadPlace."""
    if not _PATH.fullmatch(path) or ".." in path:
        raise BadLogPath("this is not the name of a log")
    return path


def local_path(path: str) -> Path:
    """Where the file is, or would be, on this machine. Raises BadPlace."""
    return logs_root() / check_path(path)


def index_path(path: Path) -> Path:
    """The file beside a log that makes finding a place in it cheap."""
    return path.with_suffix(".idx")


def describe_trouble() -> str:
    """What is wrong with the place for logs, in a sentence; "" while all is well."""
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
