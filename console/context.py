"""What every page needs of the frame around it."""

from typing import Any

from django.http import HttpRequest


def frame(request: HttpRequest) -> dict[str, Any]:
    """The theme a person chose ("light", "dark" or "" for the system's), so that the first paint has it."""
    theme = request.COOKIES.get("muster_theme", "")
    return {"theme": theme if theme in ("light", "dark") else ""}
