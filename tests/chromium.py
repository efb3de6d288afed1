"""Where the system's Chromium is, and how tests and benchmarks start it."""

import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""What the system may call it. The first draws no window that nobody looks at, and takes a third
less time.
"""
PACKAGE = "chromium-headless-shell"
"""The package of Debian that has it."""
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def find_chromium() -> str | None:
    """Return the path of the system's Chromium, or None where it has none."""
    return next(filter(None, map(shutil.which, NAMES)), None)
