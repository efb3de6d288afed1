"""Requests that were sent to a real API server, sent to ours: the same code and the same Status
must come back.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.localkube.api_server import ApiServer

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"
ADMIN = "Bearer <token of admin>"

STATE_OF_ITS_OWN = {
    "403-forbidden-rbac": "another user",
    "403-forbidden-verb": "another user",
    "403-forbidden-impersonate": "another user",
    "403-namespace-terminating": "a namespace that ends",
    "403-quota-gpu": "quotas, which are not served",
    "403-quota-object-count": "quotas, which are not served",
    "404-no-such-resource": "ours is a Status where the real one is plain text",
    "409-already-exists-being-deleted": "an object that ends",
    "409-apply-conflict": "an earlier apply",
    "409-conflict-delete-uid-precondition": "the uid of the recording",
    "409-conflict-stale-resource-version": "the uid of the recording",
    "410-continue-expired": "a version of the recording",
    "410-list-exact-too-old": "a version of the recording",
    "410-watch-after-api-server-restart": "a restart",
    "410-watch-too-old": "a version of the recording",
    "413-request-too-large": "a body that was not kept",
    "422-annotations-too-large": "a body that was not kept",
    "429-eviction-pdb": "disruption budgets, which are not served",
    "429-too-many-requests": "a loaded server",
    "504-too-large-resource-version": "a version of the recording",
}
"""What cannot be asked again, and why."""

NAMES = (
    sorted(path.stem for path in (RECORDED / "errors").glob("*.json")) if RECORDED.is_dir() else []
)


def load(name: str) -> Any:
    return json.loads((RECORDED / name).with_suffix(".json").read_text())


def replay(api: ApiServer, request: Any) -> Any:
    given = {
        name.lower().replace("-", "_"): value for name, value in request.get("headers", {}).items()
    }
    if given.get("authorization") == ADMIN or "headers" not in request:
        given.pop("authorization", None)
    else:
        given.setdefault("authorization", "")
    body = request.get("body_text", request.get("body"))
    return api.ask(
        request["method"],
        request["path"],
        body.encode() if isinstance(body, str) else body,
        **given,
    )


@pytest.mark.skipif(not NAMES, reason="the recorded answers are not beside this checkout")
def test_there_is_something_to_compare() -> None:
    assert set(STATE_OF_ITS_OWN) < set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in STATE_OF_ITS_OWN])
def test_a_recorded_refusal_is_ours_too(api: ApiServer, name: str) -> None:
    assert replay(api, load("pytorchjob/create")["request"]).status == 201
    recorded = load(f"errors/{name}")
    answer = replay(api, recorded["request"])
    assert (answer.status, answer.json) == (
        recorded["response"]["status"],
        recorded["response"]["body"],
    )
