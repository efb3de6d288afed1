#!/usr/bin/env python
"""Django's command line. `manage.py up` is `make up`, which needs no keys yet and so comes before
Django.
"""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from console.__main__ import main as console


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    # What a command writes, database and logs first of all, is for its user alone.
    os.umask(0o077)
    if sys.argv[1:] == ["up"]:
        sys.exit(console(["up"]))
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as refusal:
        sys.exit(f"Muster could not start. {refusal}")


if __name__ == "__main__":
    main()
