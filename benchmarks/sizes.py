"""What each page, stream, REST answer and log view costs at size: a workload of 2,000 pods with
50,000 events, 2,000 failed ranks, 50,000 ended workloads of one project, 500 projects, 2,000 users
and 50 clusters. Beside it a bare Django page in the same run.

python benchmarks/sizes.py [--quick] [--requests 20] [--only WORD ...] [--who member]
    [--database-url URL] [--data DIRECTORY]
"""

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import (  # noqa: E402 - as others
    Aim,
    Figures,
    describe_machine,
    pick_percentile,
    read_processor_seconds,
)
from list_pages import TABLES  # noqa: E402
from lists import Reader, prepare_filled_server, serve_application  # noqa: E402

from tests.console_server import WebServer  # noqa: E402

TIME = Aim(100)
"""Milliseconds of the server's processor, p95."""
KIB = Aim(256)
"""KiB of one answer; a file that somebody asked for has no such bound."""
WARM = 2
QUICK = 20
"""How many times smaller everything is with `--quick`."""
STREAMS = 5
RETRY_LINE = 20
"""Bytes of a stream before its first event."""
READ_WITHIN = 10.0


@dataclass(frozen=True, slots=True)
class Address:
    """What is asked for. `is_file` says that it is as large as it is.

    A `body` is posted; each time NAME in it becomes another one.
    """

    path: str
    headers: Mapping[str, str]
    is_file: bool = False
    body: str = ""


def list_addresses(fixture: Mapping[str, Any], username: str) -> dict[str, Address]:
    """List what is measured, by name."""
    page, part, rest = (
        {"Accept": "text/html"},
        {"HX-Request": "true"},
        {"Accept": "application/json"},
    )
    addresses: dict[str, Address] = {}
    for kind, key in fixture["wide"].items():
        at, api = f"/workloads/{key}", f"/api/v1/workloads/{key}"
        addresses |= {
            f"{kind}: event history": Address(at, page),
            f"{kind}: event history, filtered by pod": Address(
                f"{at}?pod=wide-{kind}-worker-7", page
            ),
            f"{kind}: head": Address(f"{at}/head", part),
            f"{kind}: events, part": Address(f"{at}/events", part),
            f"{kind}: definition": Address(f"{at}/details", page),
            f"{kind}: logs tab": Address(f"{at}/logs", page),
            f"{kind}: pods": Address(f"{at}/pods", page),
            f"{kind}: pods dialog": Address(f"{at}/pods", part),
            f"{kind}: log window": Address(f"{at}/logs/window", rest),
            f"{kind}: log window, start": Address(f"{at}/logs/window?at=start", rest),
            f"{kind}: log search": Address(f"{at}/logs/search?q=nothing-like-it", rest),
            f"{kind}: log search, expression": Address(
                f"{at}/logs/search?q=no.*like%20it$&regex=1", rest
            ),
            f"{kind}: REST workload": Address(api, rest),
            f"{kind}: REST pods": Address(f"{api}/pods", rest),
            f"{kind}: REST events": Address(f"{api}/events", rest),
        }
    running = f"/workloads/{fixture['wide']['running']}"
    addresses |= {
        "running: log of one pod": Address(f"{running}/logs?log={fixture['pod_log']}", page),
        "running: log window of one pod": Address(
            f"{running}/logs/window?log={fixture['pod_log']}", rest
        ),
        "overview": Address("/overview", page),
        "project's page, 2,000 people": Address(f"/projects/{fixture['project']}", page),
        "project's page, 50,000 ended": Address(f"/projects/{fixture['crowded']}", page),
        "node": Address(f"/clusters/{fixture['cluster']}/nodes/{fixture['node']}", page),
        "cluster": Address(f"/clusters/{fixture['cluster']}", page),
        "clusters": Address("/clusters", page),
        "wizard, new draft": Address("/workloads/new", page),
        "why can't I": Address("/why", page),
        "account": Address("/account", page),
        "access rule form": Address("/access-rules/new", page),
        "access rule form, dialog": Address("/access-rules/new", part),
        "project form": Address("/projects/new", page),
        "environment form": Address("/environments/new", page),
        "policies in force": Address("/policies/effective", page),
        "REST workloads": Address("/api/v1/workloads", rest),
        "REST projects": Address("/api/v1/org-unit/projects", rest),
    }
    for name, address in TABLES.items():
        addresses[f"table of {name}"] = Address(address, page)
    crowded = f"/workloads?project={fixture['crowded']}"
    more = {
        "": "",
        ", searched": "&q=bert-4999",
        ", none found": "&q=nothing-like-it",
        ", failed": "&status=Failed",
        ", by name": "&sort=name",
        ", by submitter": "&by=member",
        ", by framework": "&framework=PyTorch",
        ", last day": "&age=24h",
    }
    addresses |= {
        f"wizard, {step}": Address(f"/workloads/new/{fixture['drafts'][username]}/{step}", page)
        for step in ("start", "setup", "master", "review")
    }
    addresses["REST submission"] = Address(
        "/api/v1/workloads/distributed",
        rest | {"Content-Type": "application/json"},
        body=fixture["submission"],
    )
    addresses |= {
        f"50,000 ended{words}": Address(f"{crowded}{query}", page) for words, query in more.items()
    }
    addresses["50,000 ended, CSV"] = Address(
        f"/workloads.csv?project={fixture['crowded']}", page, is_file=True
    )
    return addresses


class SizeReader(Reader):
    """A reader that also sees how many bytes and queries an answer has."""

    def __init__(self, url: str, session: str, token: str = "") -> None:
        super().__init__(url, session)
        self._token = token

    def ask(self, address: Address) -> tuple[int, float, float, int]:
        """Return the status, the processor's milliseconds, the KiB and the queries."""
        headers = {**self._headers, **address.headers}
        if address.path.startswith("/api/"):
            headers["Authorization"] = f"Bearer {self._token}"
        path = address.path
        for _ in range(4):
            body = address.body.replace("NAME", f"n-{uuid.uuid4().hex}")
            self._http.request("POST" if body else "GET", path, body or None, headers)
            answer = self._http.getresponse()
            content = answer.read()
            if answer.status not in (301, 302, 303):
                break
            path = answer.headers["Location"]
        return (
            answer.status,
            float(answer.headers["x-processor-ms"]),
            len(content) / 1024,
            int(answer.headers["x-queries"]),
        )


def measure(
    figures: Figures,
    name: str,
    ask: Callable[[], tuple[int, float, float, int]],
    count: int,
    *,
    is_file: bool = False,
) -> None:
    """Measure one address many times, and print its row."""
    first = [ask() for _ in range(WARM)]
    if first[0][0] not in (200, 202):
        print(f"  {name:<48} not measured: answers {first[0][0]}", flush=True)
        return
    answers = [ask() for _ in range(2 if is_file else count)]
    times = sorted(each[1] for each in answers)
    size, queries = max(each[2] for each in answers), max(each[3] for each in answers)
    middle, high = pick_percentile(times, 50), pick_percentile(times, 95)
    values = {
        f"{name}, p95 ms": (high, None if is_file else TIME),
        f"{name}, KiB": (size, None if is_file else KIB),
    }
    missed = []
    for title, (value, aim) in values.items():
        figures.values[title] = value
        if aim is not None:
            figures.aims[title] = aim
            if not aim.is_met(value):
                missed.append(f"MISSED {aim}")
    print(
        f"  {name:<48}{middle:>9.1f}{high:>9.1f}{size:>9.1f}{queries:>7}  {' '.join(missed)}",
        flush=True,
    )


def measure_stream(figures: Figures, name: str, server: WebServer, session: str, path: str) -> None:
    """Measure the server's processor time to open a stream, and the bytes of its first events."""

    def open_stream() -> int:
        request = Request(f"{server.url}{path}", headers={"Cookie": f"muster_session={session}"})
        size, until = 0, time.monotonic() + READ_WITHIN
        with urlopen(request, timeout=READ_WITHIN) as answer:
            while time.monotonic() < until and (line := answer.readline()):
                size += len(line)
                if (line == b"\n" and size > RETRY_LINE) or line.startswith(b": quiet"):
                    break
        return size

    open_stream()
    before = read_processor_seconds(server.pid)
    sizes = [open_stream() for _ in range(STREAMS)]
    took = 1000 * (read_processor_seconds(server.pid) - before) / STREAMS
    for title, value, aim in (
        (f"{name}, ms to open", took, TIME),
        (f"{name}, KiB at first", max(sizes) / 1024, KIB),
    ):
        figures.add(title, value, aim)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"everything {QUICK} times smaller")
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="words of the names to measure")
    parser.add_argument("--who", default="admin", choices=["admin", "member"])
    parser.add_argument("--database-url", default="", help="PostgreSQL instead of SQLite")
    parser.add_argument("--data", type=Path, help="keep the data there, and use them again")
    chosen = parser.parse_args()
    print(describe_machine(), flush=True)
    figures, started = Figures(), time.monotonic()
    divided_by = QUICK if chosen.quick else 1
    with prepare_filled_server(
        "benchmarks.size_rows", divided_by, database_url=chosen.database_url, data=chosen.data
    ) as (server, fixture):
        print(f"  rows made in {time.monotonic() - started:.0f} s", flush=True)
        print(f"  {'':<48}{'p50 ms':>9}{'p95 ms':>9}{'KiB':>9}{'queries':>8}", flush=True)
        session = fixture["sessions"][chosen.who]

        def is_chosen(name: str) -> bool:
            return not chosen.only or any(word in name for word in chosen.only)

        with (
            serve_application(server, "benchmarks.peer_page") as peer_url,
            serve_application(server, "benchmarks.processor_time") as url,
        ):
            peer = SizeReader(peer_url, fixture["sessions"]["admin"])
            bare = Address("/peer", {})
            measure(figures, "a bare Django page", lambda: peer.ask(bare), chosen.requests)
            reader = SizeReader(url, session, fixture["tokens"][chosen.who])
            for name, address in list_addresses(fixture, chosen.who).items():
                if is_chosen(name):
                    measure(
                        figures,
                        name,
                        lambda a=address: reader.ask(a),
                        chosen.requests,
                        is_file=address.is_file,
                    )  # type: ignore[misc]
            peer = SizeReader(peer_url, fixture["sessions"]["admin"])
            measure(figures, "a bare Django page, after", lambda: peer.ask(bare), chosen.requests)
        if is_chosen("streams"):
            with server:
                for kind in ("running", "failed"):
                    at = f"/workloads/{fixture['wide'][kind]}"
                    measure_stream(
                        figures, f"{kind}: log stream", server, session, f"{at}/logs/stream"
                    )
                    measure_stream(
                        figures,
                        f"{kind}: quiet log stream",
                        server,
                        session,
                        f"{at}/logs/stream?quiet=1",
                    )
                    measure_stream(
                        figures,
                        f"{kind}: stream of a workload",
                        server,
                        session,
                        f"{at}/live?after=0",
                    )
                measure_stream(
                    figures, "stream of rows", server, session, "/workloads/live?after=0"
                )
    print(f"load after: {describe_machine().rpartition(': ')[2]}")
    print("missed: " + ("; ".join(figures.missed_aims) or "nothing"))
    return 1 if figures.missed_aims else 0


if __name__ == "__main__":
    raise SystemExit(main())
