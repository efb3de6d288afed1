"""How long the page of every table takes with many rows, through HTTP on loopback, beside a bare Django page in the same run.

python benchmarks/lists.py [--rows 10000] [--requests 40] [--only NAME ...]
"""

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import Aim, Figures, machine  # noqa: E402 - as the other benchmarks are run

from tests.console_server import WebServer  # noqa: E402

AIM = Aim(80)
WARM = 3
MIDDLE = 60
"""Pages that are turned over before the middle one is measured."""
FILES = 3
"""How often a CSV file is asked for."""
SEARCH = "bert"
FILLED_WITHIN = 1800.0
TABLES = {
    **{"workloads": "/workloads", "environments": "/environments", "compute resources": "/compute-resources"},
    **{"data sources": "/data-sources", "credentials": "/credentials", "templates": "/templates", "policies": "/policies"},
    **{"projects": "/projects", "departments": "/departments", "node pools": "/node-pools", "users": "/users"},
    **{"access rules": "/access-rules", "roles": "/roles", "service accounts": "/service-accounts", "audit": "/audit"},
}
FILES_ELSEWHERE = {"workloads": "/workloads.csv", "audit": "/audit/export?format=csv"}
NEXT = re.compile(rb'rel="next"[^>]*href="([^"]+)"|href="([^"]+)"[^>]*rel="next"')


class Reader:
    """A person's requests over one connection."""

    def __init__(self, url: str, session: str, pid: int) -> None:
        there = urlsplit(url)
        self._pid = pid
        self._http = http.client.HTTPConnection(there.hostname or "", there.port, timeout=120)
        self._headers = {"Cookie": f"muster_session={session}", "Accept": "text/html"}

    def get(self, address: str) -> tuple[float, int, bytes]:
        """Milliseconds until the whole answer was there, its status, and the answer."""
        started = time.monotonic()
        self._http.request("GET", address, headers=self._headers)
        answer = self._http.getresponse()
        body = answer.read()
        return (time.monotonic() - started) * 1000, answer.status, body

    def measure(self, figures: Figures, name: str, address: str, count: int, aim: Aim | None = AIM) -> None:
        """Milliseconds until the answer was there, and of the server's processor: the second says something on a busy machine, too."""
        for _ in range(WARM):
            self.get(address)
        before = _processor(self._pid)
        figures.spread(name, [self.get(address)[0] for _ in range(count)], 95, aim=aim)
        figures.put(f"{name}, processor ms", (_processor(self._pid) - before) / count)


def measure(figures: Figures, reader: Reader, who: str, name: str, address: str, requests: int) -> None:
    """The first page, one in the middle, a search and the file of one table, as far as this person sees it."""
    _, status, body = reader.get(address)
    if status != 200:
        print(f"  {name}, {who}: not measured, {address} answers {status}", flush=True)
        return
    reader.measure(figures, f"{name}, first page, {who}", address, requests)
    middle = address
    for _ in range(MIDDLE):
        found = NEXT.search(body)
        if found is None:
            break
        following = (found[1] or found[2]).decode().replace("&amp;", "&")
        middle = f"{address}{following}" if following.startswith("?") else following
        _, _, body = reader.get(middle)
    if middle != address:
        reader.measure(figures, f"{name}, a page in the middle, {who}", middle, requests)
    reader.measure(figures, f"{name}, searched, {who}", f"{address}?q={SEARCH}", requests)
    file = FILES_ELSEWHERE.get(name, f"{address}?format=csv")
    took, status, body = reader.get(file)
    if status == 200 and body.count(b"\n") > 1:
        times = [took, *(reader.get(file)[0] for _ in range(FILES - 1))]
        lines = body.count(b"\n") - 1
        figures.put(f"{name}, CSV of {lines} rows, {who}, ms", statistics.median(times))


def _processor(pid: int) -> float:
    """Milliseconds that a process and its threads have had of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@contextmanager
def filled(rows: int) -> Iterator[tuple[WebServer, dict[str, str]]]:
    """The console on data of its own, with its rows, and who is signed in there."""
    data = Path(tempfile.mkdtemp(prefix="muster-lists-"))
    server = WebServer(data, debug=0, log_level="ERROR")
    try:
        server.manage("migrate", "--verbosity", "0")
        command = [sys.executable, "-m", "benchmarks.list_rows", str(rows)]
        done = subprocess.run(command, cwd=ROOT, env=server.environment, capture_output=True, text=True, timeout=FILLED_WITHIN)
        if done.returncode:
            raise SystemExit(f"the rows could not be made:\n{done.stderr[-4000:]}")
        with server:
            yield server, json.loads(done.stdout.splitlines()[-1])
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def peer(server: WebServer) -> Iterator[tuple[str, int]]:
    """The address of the bare page and its process: another process on the same data."""
    command = [sys.executable, "-m", "uvicorn", "benchmarks.peer_page:application", "--port", "0", "--lifespan", "off", "--no-access-log"]
    process = subprocess.Popen(command, cwd=ROOT, env=server.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1], process.pid
                return
        raise SystemExit("the peer did not start")
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[], choices=[*TABLES, []])
    chosen = parser.parse_args()
    print(machine(), flush=True)
    figures = Figures()
    started = time.monotonic()
    with filled(chosen.rows) as (server, sessions):
        print(f"  {chosen.rows} rows of each table, made in {time.monotonic() - started:.0f} s", flush=True)
        with peer(server) as (url, pid):
            bare = Reader(url, sessions["admin"], pid)
            bare.measure(figures, "a bare Django page of 50 rows", "/peer", chosen.requests, aim=None)
        for who in ("admin", "member"):
            reader = Reader(server.url, sessions[who], server.pid)
            for name, address in TABLES.items():
                if not chosen.only or name in chosen.only:
                    measure(figures, reader, who, name, address, chosen.requests)
            if not chosen.only:
                reader.measure(figures, f"overview, {who}", "/overview", chosen.requests)
    print(f"load after: {machine().rpartition(': ')[2]}")
    print("missed: " + ("; ".join(figures.missed) or "nothing"))
    return 1 if figures.missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
