"""Command line and environment of every process, whoever starts it: `up`, a Procfile, a person."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from console import spans
from console.options import Options

BASE = Path(__file__).resolve().parent.parent
STREAM_GRACE_SECONDS = 3
"""Seconds that open pages get to end by themselves when the web process stops.

Without it, the web process would wait for ever.
"""
STATIC_MANIFEST = "staticfiles.json"
"""The file with the hashed names of static files, written when all of them are collected."""
PROTOCOL = ("--http", "console.web_connections:BoundedProtocol", "--ws", "none")
"""What the web process speaks: HTTP with bounds. A WebSocket would be without them."""
PROCESS_NAMES = ("web", "worker", "beat", "follow", "capture")
BACKGROUND_SETTINGS = "console.background_settings"
"""The settings of `follow`, `capture` and `beat`."""
_ALLOWED_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
)
_ALLOWED_PREFIXES = ("LC_", "CUDA_", "NVIDIA_")


def build_command(name: str, options: Options, *, listener: int | None = None) -> list[str]:
    """Build the command line of a process.

    `listener` is the descriptor of an open socket for the web process, instead of its address.
    Raises ValueError for an unknown name.
    """
    python = sys.executable
    level = options.log_level.lower()
    if name == "web":
        address = (
            ["--host", options.host, "--port", str(options.port)]
            if listener is None
            else ["--fd", str(listener)]
        )
        proxy = "--proxy-headers" if options.behind_proxy else "--no-proxy-headers"
        logging = [
            "--no-access-log",
            "--no-server-header",
            "--lifespan",
            "on",
            "--log-level",
            level,
        ]
        grace = ["--timeout-graceful-shutdown", str(STREAM_GRACE_SECONDS)]
        return [
            python,
            "-m",
            "uvicorn",
            "console.asgi:application",
            *address,
            *grace,
            *PROTOCOL,
            proxy,
            *logging,
        ]
    if name == "worker":
        isolation = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
        return [
            python,
            "-m",
            "celery",
            "-A",
            "console",
            "worker",
            "-P",
            "threads",
            "-c",
            str(options.worker_threads),
            *isolation,
            "-l",
            level,
        ]
    if name == "beat":
        return [python, "-m", "celery", "-A", "console.beat", "beat", "--pidfile", "", "-l", level]
    if name in ("follow", "capture"):
        return [python, str(BASE / "manage.py"), name, f"--settings={BACKGROUND_SETTINGS}"]
    raise ValueError(f"there is no process {name}")


def find_refusals(options: Options) -> list[str]:
    """Return why no process can run with these options, a sentence each."""
    refusals = []
    if options.production and options.debug:
        refusals.append(
            "MUSTER_DEBUG and MUSTER_PRODUCTION exclude each other: debug pages show secrets. "
            "Take one of them away."
        )
    if options.static_dir and not (options.static_dir / STATIC_MANIFEST).is_file():
        refusals.append(
            f"MUSTER_STATIC_DIR names {options.static_dir}, and no static files were collected "
            f"there ({STATIC_MANIFEST} is missing). "
            "Run: python manage.py collectstatic --no-input, or take the setting away."
        )
    if options.database_url and importlib.util.find_spec("psycopg") is None:
        refusals.append(
            "MUSTER_DATABASE_URL names PostgreSQL, but its driver is not installed. "
            f"Run: {sys.executable} -m pip install -r {BASE / 'requirements-postgres.lock'}"
        )
    if options.traces_url and (missing := spans.find_missing_package()):
        refusals.append(
            f"MUSTER_TRACES_URL names a collector, but the package {missing} is not installed. "
            f"Run: {sys.executable} -m pip install -r {BASE / 'requirements-otel.lock'}"
        )
    return refusals


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the embedded cluster may get.

    Pods run as the same user and can read its environment, so no secret may be in it.
    """
    return {
        name: value
        for name, value in environment.items()
        if name in _ALLOWED_VARIABLES or name.startswith(_ALLOWED_PREFIXES)
    }


def build_environment(options: Options, **settings: str) -> dict[str, str]:
    """Build the environment of Muster's own processes.

    It is this process's, with the data directory spelled out and these MUSTER_ settings.
    """
    overrides = {f"MUSTER_{name.upper()}": value for name, value in settings.items()}
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "MUSTER_DATA_DIR": str(options.data_dir),
        # Celery would run all system checks, which import the code of every page, and drop what
        # they find.
        "CELERY_SKIP_CHECKS": "1",
        **overrides,
    }
