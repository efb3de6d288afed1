"""Requests that schemathesis makes of the OpenAPI document, right ones and wrong ones.

None may be answered by a server error, nor with a status that the document does not have for it.
"""

import copy
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest

from tests.api.described import list_operations
from tests.cli.running import ROWS
from tests.console_server import WebServer
from workloads.api.api_description import build_openapi_document

CALLER_ID = "7000000011"
CALLER = f"""
from projects.models import User
from projects.tokens import issue_token
user = User.objects.create(username="prober", pk={CALLER_ID}, is_superuser=True, is_staff=True)
print(issue_token(user)[0])
"""
"""An administrator whose id no made-up request hits by chance: nothing ends the caller's token."""
SECONDS = 1200
"""How long requests are made: the last phase goes on until then."""
SAMPLE_SECONDS = 60
"""The same of the sample that runs with all other tests."""
EXAMPLES = 25
"""Requests to an operation, each time that its turn comes."""
ID_NAMES = ("id", "uuid", "key", "name", "workloadId", "subjectId", "clientId")
"""Under which an answer has what a path takes."""
MOST_IDS = 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    with WebServer(tmp_path / "web", requests_per_minute=10_000_000) as web:
        web.python(ROWS)
        yield web


def build_document(server: WebServer, token: str) -> dict[str, Any]:
    """The document, with what is there among the values of the arguments of its paths.

    Else nearly every request would be answered 404.
    """
    document: dict[str, Any] = copy.deepcopy(build_openapi_document())
    for path, operations in document["paths"].items():
        above = path.partition("/{")[0]
        if above == path or "get" not in document["paths"].get(above, {}):
            continue
        ids = sorted(set(find_ids(fetch(server, token, above))) - {CALLER_ID})[:MOST_IDS]
        for operation in operations.values():
            name = path.partition("/{")[2].partition("}")[0]
            first = next(each for each in operation["parameters"] if each["name"] == name)
            if ids:
                first["schema"] = {"anyOf": [first["schema"], {"enum": ids}, {"enum": ids}]}
    return document


def fetch(server: WebServer, token: str, path: str) -> Any:
    request = Request(f"{server.url}{path}", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request) as answer:
        return json.load(answer)


def find_ids(value: Any) -> Iterator[str]:
    """The ids of the items of a list, wherever they are in them."""
    if isinstance(value, list):
        for each in value:
            yield from find_ids(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in ID_NAMES and isinstance(each, str | int):
                yield str(each)
            elif isinstance(each, dict | list):
                yield from find_ids(each)


class Made(NamedTuple):
    """A request that was answered: its operation, the status, and whether it was a right one."""

    operation: str
    status: int
    mode: str


def read_requests(report: Path) -> Iterator[Made]:
    """The requests that were answered."""
    for line in report.read_text(errors="replace").splitlines():
        event = json.loads(line).get("ScenarioFinished")
        if event is not None:
            yield from _read_scenario(event["recorder"])


def _read_scenario(recorder: dict[str, Any]) -> Iterator[Made]:
    for key, interaction in recorder.get("interactions", {}).items():
        if interaction.get("response"):
            meta = recorder["cases"][key]["value"].get("meta") or {}
            mode = meta.get("generation", {}).get("mode", "")
            yield Made(recorder["label"], interaction["response"]["status_code"], mode)


def make_requests(server: WebServer, folder: Path, *, phases: str, seconds: int) -> list[Made]:
    """Make requests for so long; none is answered by an error or an undescribed status."""
    token = server.python(CALLER).strip()
    document, report = folder / "document.json", folder / "events.ndjson"
    document.write_text(json.dumps(build_document(server, token)))
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color", "run", document),
            *("--url", server.url, "--header", f"Authorization: Bearer {token}"),
            *("--checks", "not_a_server_error,status_code_conformance", "--mode", "all"),
            *("--phases", phases, "--max-time", str(seconds)),
            *("--max-examples", str(EXAMPLES), "--seed", str(seed), "--workers", "2"),
            *("--continue-on-failure", "--warnings", "off", "--request-timeout", "60"),
            *("--suppress-health-check", "all", "--generation-database", "none"),
            *("--report", "ndjson", "--report-ndjson-path", report),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds + 600,
    )
    print(done.stdout[-20_000:], done.stderr[-4000:])
    assert token not in done.stdout + done.stderr
    requests = list(read_requests(report))
    statuses = Counter(each.status for each in requests)
    modes = Counter(each.mode for each in requests)
    print(f"{len(requests):,} requests, statuses {dict(statuses)}, {dict(modes)}")
    assert done.returncode == 0, "see above"
    # A token that had ended would be answered 401 everywhere, which is described.
    assert fetch(server, token, "/api/v1/me")
    return requests


@pytest.mark.timeout(900)
def test_a_sample_of_made_up_requests_is_answered_as_described(
    server: WebServer, tmp_path: Path
) -> None:
    requests = make_requests(server, tmp_path, phases="fuzzing", seconds=SAMPLE_SECONDS)
    assert requests


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_no_made_up_request_gets_an_error_or_an_undescribed_status(
    server: WebServer, tmp_path: Path
) -> None:
    phases = "examples,coverage,fuzzing"
    requests = make_requests(server, tmp_path, phases=phases, seconds=SECONDS)
    covered = {each.operation for each in requests}
    assert {f"{method} {path}" for method, path, _ in list_operations()} <= covered
    statuses = Counter(each.status for each in requests)
    assert min(statuses[200], statuses[400], statuses[404]) > 100
    assert {each.mode for each in requests} >= {"positive", "negative"}
