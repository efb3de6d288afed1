"""The recorded answers of a real API server, which lie beside the project and not in it.

A test that needs one skips where they are absent.
"""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared(path: str) -> Path:
    """A file or folder of the shared data; skips the test when it is not there."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not here")
    return found


def exchange(name: str) -> tuple[Any, Any]:
    """The request body and the response body of a recorded exchange such as `pod/create`."""
    content = json.loads(shared(f"recorded/{name}.json").read_text())
    return content["request"].get("body"), content["response"].get("body")
