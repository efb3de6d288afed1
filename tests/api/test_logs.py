"""Logs over REST, from a real server: what was kept, and what comes."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.console_server import WebServer

ROWS = """
import json
from projects import tokens
from tests.cast import a_spec, make_cast
from workloads import journal
from workloads.logbook import log_paths
from workloads.models import Log, Pod
cast = make_cast()
workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
data = {"spec": {"containers": [{"name": "pytorch"}]}}
lost, pod = [
    Pod.objects.create(workload=workload, attempt=1, uid=uid, name="p-master-0", data=data)
    for uid in ("lost", "u")
]
def log(container, run, state, lines, pod=pod, **more):
    path = log_paths.build_log_path(workload.pk, pod.uid, container, run)
    log_paths.local_path(path).parent.mkdir(parents=True, exist_ok=True)
    text = "".join(
        f"2026-01-01T00:00:{number:02}.000000000Z {container} {run} line {number}\\n"
        for number in range(lines)
    )
    log_paths.local_path(path).write_text(text)
    return Log.objects.create(pod=pod, container=container, run=run, state=state, path=path,
                              size=len(text), **more)
log("pytorch", 0, "complete", 3)
log("pytorch", 0, "complete", 1, pod=lost)
log("pytorch", 1, "complete", 20)
log("setup", 0, "complete", 1, is_init=True)
open_log = log("tool", 0, "capturing", 2)
Log.objects.create(pod=pod, container="gone", state="removed", note="It was older than 14 days.")
given = [tokens.issue_token(each)[0] for each in (cast.bob, cast.mallory)]
print(json.dumps([f"/api/v1/workloads/{workload.pk}/pods", *given, open_log.path, open_log.pk]))
"""


class Reader:
    """Bob, at the logs of one workload; Mallory sees none of it."""

    def __init__(self, web: WebServer) -> None:
        self.web = web
        path, self.bob, self.mallory, self.open_path, self.open_log = json.loads(web.python(ROWS))
        self.url = web.url + path

    def get(
        self, query: str, *, pod: str = "p-master-0", token: str = "", **more: Any
    ) -> requests.Response:
        headers = {"authorization": f"Bearer {token or self.bob}"}
        return requests.get(f"{self.url}/{pod}/logs?{query}", headers=headers, timeout=180, **more)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with WebServer(tmp_path_factory.mktemp("web")) as web:
        yield Reader(web)


KEPT = [
    ("container=pytorch", [f"pytorch 1 line {number}" for number in range(20)]),
    ("container=pytorch&tailLines=2", ["pytorch 1 line 18", "pytorch 1 line 19"]),
    ("container=pytorch&tailLines=0", []),
    (
        "container=pytorch&tailLines=5&sinceTime=2026-01-01T00:00:18Z",
        ["pytorch 1 line 18", "pytorch 1 line 19"],
    ),
    ("container=pytorch&previous=true&tailLines=1", ["pytorch 0 line 2"]),
    (
        "container=pytorch&previous=true&tailLines=1&timestamps=true",
        ["2026-01-01T00:00:02.000000000Z pytorch 0 line 2"],
    ),
    ("tailLines=1", ["pytorch 1 line 19"]),
    ("container=pytorch&run=0&tailLines=1", ["pytorch 0 line 2"]),
    ("attempt=1&run=1&tailLines=1", ["pytorch 1 line 19"]),
    ("container=setup", ["setup 0 line 0"]),
    ("container=pytorch&follow=true&tailLines=1", ["pytorch 1 line 19"]),
]


def test_what_was_kept_is_told_as_it_is_asked_for(reader: Reader) -> None:
    for query, lines in KEPT:
        answer = reader.get(query)
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            200,
            "text/plain; charset=utf-8",
        )
        assert answer.text.splitlines() == lines, query


def test_a_pod_whose_name_came_back_is_read_by_its_id(reader: Reader) -> None:
    assert [reader.get("", pod=each).text.splitlines()[-1] for each in ("p-master-0", "u")] == [
        "pytorch 1 line 19",
        "pytorch 1 line 19",
    ]
    assert reader.get("attempt=1", pod="lost").text == "pytorch 0 line 0\n"
    assert reader.get("run=1", pod="lost").status_code == 404
    assert reader.get("", pod="lost", token=reader.mallory).status_code == 404


def test_what_comes_is_told_while_it_is_followed_until_the_end(reader: Reader) -> None:
    with reader.get("container=tool&follow=true", stream=True) as answer:
        lines = answer.iter_lines()
        assert [next(lines), next(lines)] == [b"tool 0 line 0", b"tool 0 line 1"]
        more = f"""
from workloads.logbook import log_paths
from workloads.models import Log
with log_paths.local_path("{reader.open_path}").open("a") as log:
    log.write("2026-01-01T00:01:00.000000000Z more\\n")
Log.objects.filter(pk={reader.open_log}).update(state="complete")
"""
        writer = threading.Thread(target=reader.web.python, args=(more,))
        writer.start()
        assert list(lines) == [b"more"]
        writer.join()


REFUSED = [
    ("p-master-0", "container=none", 404, "no such log"),
    ("p-master-0", "container=setup&previous=true", 404, "no such log"),
    ("p-master-0", "container=gone", 404, "older than 14 days"),
    ("p-master-0", "container=pytorch&run=2", 404, "no such log"),
    ("p-master-0", "attempt=2", 404, "no such pod"),
    ("lost", "attempt=2", 404, "no such pod"),
    ("p-master-0", "run=x", 400, "run"),
    ("p-worker-0", "", 404, "no such pod"),
    ("p%00", "", 404, "no such pod"),
    ("p-master-0", "tailLines=x", 400, "tailLines"),
    ("p-master-0", "sinceTime=now", 400, "sinceTime"),
    ("p-master-0", "follow=yes", 400, "follow"),
]


def test_what_is_not_there_is_refused_in_words(reader: Reader) -> None:
    for pod, query, status, words in REFUSED:
        answer = reader.get(query, pod=pod)
        assert (answer.status_code, words in answer.json()["message"]) == (status, True), (
            answer.text
        )


def test_logs_of_others_are_not_there(reader: Reader) -> None:
    assert reader.get("", token=reader.mallory).status_code == 404
    assert reader.get("", token="x").status_code == 401
