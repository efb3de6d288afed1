"""System checks (`manage.py check`) of settings that run, but not as anybody would want.

Each message says what is wrong and what to do.
"""

import ipaddress
import os
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from console.options import Options
from console.texts import parse_number

MIN_SECRET_CHARS = 32
OPTIONS_TAG = "options"
"""The tag with which a command that serves no page asks for these checks alone.

All other checks import the code of every page.
"""


def check_options(**_: Any) -> list[CheckMessage]:
    """Check the options of this process, as Django's system check calls it."""
    return check_settings(settings.OPTIONS, parse_number(os.environ.get("WEB_CONCURRENCY")) or 1)


def check_settings(options: Options, web_processes: int) -> list[CheckMessage]:
    """Return what is wrong with these options.

    Errors stop every command; warnings are shown.
    """
    return [
        *_check_always(options, web_processes),
        *(_check_production(options) if options.production else ()),
    ]


def _check_always(options: Options, web_processes: int) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if web_processes > 1 and not options.database_url:
        messages.append(
            Error(
                f"{web_processes} web processes (WEB_CONCURRENCY) would share one SQLite file.",
                hint="Set MUSTER_DATABASE_URL to a PostgreSQL database, or unset WEB_CONCURRENCY.",
                id="muster.E001",
            )
        )
    if not _is_loopback(options.host) and not options.production:
        messages.append(
            Warning(
                (
                    f"The console listens on {options.host} without MUSTER_PRODUCTION: passwords "
                    "and cookies travel in the clear."
                ),
                hint=(
                    "Listen on 127.0.0.1 behind a proxy that speaks HTTPS, and set "
                    "MUSTER_PRODUCTION=1. See docs/production.md."
                ),
                id="muster.W001",
            )
        )
    if options.behind_proxy and not _is_loopback(options.host):
        messages.append(
            Warning(
                (
                    "MUSTER_BEHIND_PROXY trusts X-Forwarded-Proto, but the web process can be "
                    "reached without the proxy."
                ),
                hint="Listen on loopback, or let the network admit the proxy only.",
                id="muster.W002",
            )
        )
    return messages


def _check_production(options: Options) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if len(options.secret_key) < MIN_SECRET_CHARS:
        messages.append(
            Error(
                (
                    f"MUSTER_SECRET_KEY is shorter than {MIN_SECRET_CHARS} characters, so tokens "
                    "could be forged."
                ),
                hint='Make one with: python -c "import secrets; print(secrets.token_urlsafe(64))"',
                id="muster.E002",
            )
        )
    if not options.hosts:
        messages.append(
            Error(
                "MUSTER_ALLOWED_HOSTS is empty, so nobody but this machine gets a page.",
                hint="Name the hosts under which people reach the console, separated by commas.",
                id="muster.E003",
            )
        )
    if not options.database_url:
        messages.append(
            Warning(
                "Production runs on SQLite: one machine, one web process.",
                hint="Set MUSTER_DATABASE_URL to a PostgreSQL database for more.",
                id="muster.W003",
            )
        )
    return messages


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
