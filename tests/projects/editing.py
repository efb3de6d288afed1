"""Changing something by its form, as a browser does: what it started from goes with it."""

from typing import Any

from django.test import Client


def edit(client: Client, path: str, given: dict[str, Any]) -> Any:
    """Open the form, and send it with these values."""
    return client.post(path, given | {"started_from": client.get(path).context["started_from"]})
