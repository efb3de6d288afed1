"""Opening a page in a browser, where there is one with a window."""

import importlib
import os
import sys

VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY")


def open_page(address: str) -> bool:
    """Open a page, and tell whether there was a browser for it.

    One that runs in the terminal would take it over, and is not asked.
    """
    has_windows = sys.platform in ("darwin", "win32") or any(map(os.environ.get, VARIABLES))
    if not has_windows or os.environ.get("SSH_CONNECTION"):
        return False
    # Imported by name where it is used: it takes long, and most commands open nothing.
    return bool(importlib.import_module("webbrowser").open(address))
