"""How long the page of every table takes with many rows, through HTTP on loopback, beside a bare
Django page in the same run.

python benchmarks/lists.py [--rows 10000] [--requests 100] [--only NAME ...]
"""

import argparse
import http.client
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import KEYS, Aim, Figures, describe_machine  # noqa: E402 - as the other benchmarks are run
from list_pages import TABLES  # noqa: E402
from stage import new_database  # noqa: E402

from tests.console_server import WebServer  # noqa: E402

AIM = Aim(80)
HEADER = "x-processor-ms"
"""As benchmarks.processor_time sends it."""
WARM = 5
MIDDLE = 60
"""Pages that are turned over before the middle one is measured."""
FILES = 3
"""How often a CSV file is asked for."""
SEARCH = "bert"
FILLED_WITHIN = 1800.0
FILES_ELSEWHERE = {"workloads": "/workloads.csv", "audit": "/audit/export?format=csv"}
NEXT = re.compile(rb'rel="next"[^>]*href="([^"]+)"|href="([^"]+)"[^>]*rel="next"')


@dataclass(frozen=True, slots=True)
class Answer:
    """`took` is the milliseconds until the whole answer was there, `processor` those of the
    server's processor.
    """

    status: int
    body: bytes
    took: float
    processor: float


class Reader:
    """A user's requests over one connection."""

    def __init__(self, url: str, session: str) -> None:
        address = urlsplit(url)
        self._http = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        self._headers = {"Cookie": f"muster_session={session}", "Accept": "text/html"}

    def get(self, address: str) -> "Answer":
        """Return the whole answer of a page, and what it took."""
        started = time.monotonic()
        self._http.request("GET", address, headers=self._headers)
        answer = self._http.getresponse()
        body = answer.read()
        return Answer(
            answer.status, body, (time.monotonic() - started) * 1000, float(answer.headers[HEADER])
        )

    def measure(
        self, figures: Figures, name: str, address: str, count: int, aim: Aim | None = AIM
    ) -> None:
        """Measure the milliseconds until the answer was there, and those of the server's processor:
        the latter are meaningful on a busy machine, too.
        """
        for _ in range(WARM):
            self.get(address)
        answers = [self.get(address) for _ in range(count)]
        figures.add_percentiles(name, [each.took for each in answers], 95, aim=aim)
        figures.add_percentiles(
            f"{name}, processor", [each.processor for each in answers], 95, aim=aim
        )


def measure_table(
    figures: Figures, reader: Reader, username: str, name: str, address: str, requests: int
) -> None:
    """Measure the pages and the file of one table, as this user sees it.

    The pages are the first one, one in the middle, and a search.
    """
    first = reader.get(address)
    if first.status != 200:
        print(f"  {name}, {username}: not measured, {address} answers {first.status}", flush=True)
        return
    body = first.body
    reader.measure(figures, f"{name}, first page, {username}", address, requests)
    middle = address
    for _ in range(MIDDLE):
        next_link = NEXT.search(body)
        if next_link is None:
            break
        following = (next_link[1] or next_link[2]).decode().replace("&amp;", "&")
        middle = f"{address}{following}" if following.startswith("?") else following
        body = reader.get(middle).body
    if middle != address:
        reader.measure(figures, f"{name}, a page in the middle, {username}", middle, requests)
    reader.measure(figures, f"{name}, searched, {username}", f"{address}?q={SEARCH}", requests)
    file = FILES_ELSEWHERE.get(name, f"{address}?format=csv")
    answers = [reader.get(file) for _ in range(FILES)]
    lines = answers[0].body.count(b"\n") - 1
    if answers[0].status == 200 and lines > 0:
        figures.add(
            f"{name}, CSV of {lines} rows, {username}, ms",
            statistics.median(each.took for each in answers),
        )


@contextmanager
def prepare_filled_server(
    module: str, argument: object, *, database_url: str = "", data: Path | None = None
) -> Iterator[tuple[WebServer, dict[str, Any]]]:
    """Prepare the console's data with the rows that a module creates, which is told how many.

    Yield the server, not started, and what the module made. What is in `data` is kept, and used
    again.
    """
    folder = data or Path(tempfile.mkdtemp(prefix="muster-rows-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows_file = folder / "made.json"
    try:
        with new_database(database_url) as url:
            database: dict[str, object] = {"database_url": url} if url else {}
            server = WebServer(folder, debug=0, log_level="ERROR", **KEYS, **database)
            if not rows_file.exists():
                server.manage("migrate", "--verbosity", "0")
                rows_file.write_text(_create_rows(server, module, argument))
            # The static files are collected, as `up` does.
            server.manage("collectstatic", "--noinput", "--verbosity", "0")
            yield server, json.loads(rows_file.read_text())
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


def _create_rows(server: WebServer, module: str, argument: object) -> str:
    """Create the rows on the server's data; return what was made as JSON."""
    process = subprocess.run(
        [sys.executable, "-m", module, str(argument)],
        cwd=ROOT,
        env=server.environment,
        capture_output=True,
        text=True,
        timeout=FILLED_WITHIN,
    )
    if process.returncode:
        raise SystemExit(f"the rows could not be made:\n{process.stderr[-4000:]}")
    return process.stdout.splitlines()[-1]


@contextmanager
def serve_application(server: WebServer, application: str) -> Iterator[str]:
    """Serve one of our ASGI applications in its own process; yield its address.

    It uses the data of `server`, which need not run.
    """
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        f"{application}:application",
        "--port",
        "0",
        "--lifespan",
        "off",
        "--no-access-log",
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=server.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if match := re.search(r"running on (http://\S+)", line):
                break
        else:
            raise SystemExit(f"{application} did not start")
        # Nobody reads on: a full pipe would stop it.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield match[1]
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[], choices=[*TABLES, []])
    chosen = parser.parse_args()
    print(describe_machine(), flush=True)
    figures = Figures()
    started = time.monotonic()
    with prepare_filled_server("benchmarks.list_rows", chosen.rows) as (server, sessions):
        print(
            f"  {chosen.rows} rows of each table, made in {time.monotonic() - started:.0f} s",
            flush=True,
        )
        with (
            serve_application(server, "benchmarks.peer_page") as peer_url,
            serve_application(server, "benchmarks.processor_time") as url,
        ):
            Reader(peer_url, sessions["admin"]).measure(
                figures, "a bare Django page of 50 rows, before", "/peer", chosen.requests, aim=None
            )
            for username in ("admin", "member"):
                reader = Reader(url, sessions[username])
                for name, address in TABLES.items():
                    if not chosen.only or name in chosen.only:
                        measure_table(figures, reader, username, name, address, chosen.requests)
                if not chosen.only:
                    reader.measure(figures, f"overview, {username}", "/overview", chosen.requests)
            # Others may use the machine: what has not changed in the same run has to cost the same.
            Reader(peer_url, sessions["admin"]).measure(
                figures, "a bare Django page of 50 rows, after", "/peer", chosen.requests, aim=None
            )
    print(f"load after: {describe_machine().rpartition(': ')[2]}")
    print("missed: " + ("; ".join(figures.missed_aims) or "nothing"))
    return 1 if figures.missed_aims else 0


if __name__ == "__main__":
    raise SystemExit(main())
