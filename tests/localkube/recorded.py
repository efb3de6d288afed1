"""The recorded answers of a real API server, which lie beside the project and not in it.

A test that needs one skips where they are absent.
"""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def get_shared_path(path: str) -> Path:
    """Return a file or folder of the shared data; skip the test when it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not here")
    return found


def load_exchange(name: str) -> tuple[Any, Any]:
    """Load the request body and the response body of an exchange such as `pod/create`."""
    content = json.loads(get_shared_path(f"recorded/{name}.json").read_text())
    return content["request"].get("body"), content["response"].get("body")
