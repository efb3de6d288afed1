"""What the first page of the workloads' table costs by each of its orders, as an administrator and
as a member of one project.

python benchmarks/sorts.py [--rows 100000] [--requests 20] [--database-url URL] [--data DIRECTORY]
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import Aim, Figures, describe_machine, pick_percentile  # noqa: E402 - as others
from lists import Reader, prepare_filled_server, serve_application  # noqa: E402

AIM = Aim(100)
"""Milliseconds, p95: of the server's processor, and on PostgreSQL, whose processes are others,
until the answer is there."""
ORDERS = ("created", "name", "status", "project", "cluster", "department", "image")
AMOUNTS = ("cpu_request", "memory_request", "attempt")
WARM = 2


def measure_order(
    figures: Figures, reader: Reader, username: str, order: str, count: int, *, is_remote: bool
) -> None:
    """Measure the first page by one order."""
    answers = [reader.get(f"/workloads?sort={order}") for _ in range(WARM + count)][WARM:]
    if any(each.status != 200 for each in answers):
        raise SystemExit(f"the table by {order} answers {answers[0].status}")
    times = sorted(each.took if is_remote else each.processor for each in answers)
    figures.add(f"by {order}, {username}, p50 ms", pick_percentile(times, 50))
    figures.add(f"by {order}, {username}, p95 ms", pick_percentile(times, 95), AIM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--database-url", default="", help="PostgreSQL instead of SQLite")
    parser.add_argument("--data", type=Path, help="keep the data there, and use them again")
    chosen = parser.parse_args()
    print(describe_machine(), flush=True)
    figures, started = Figures(), time.monotonic()
    with prepare_filled_server(
        "benchmarks.sort_rows", chosen.rows, database_url=chosen.database_url, data=chosen.data
    ) as (server, sessions):
        print(f"  {chosen.rows} rows, made in {time.monotonic() - started:.0f} s", flush=True)
        with serve_application(server, "benchmarks.processor_time") as url:
            for username in ("admin", "member"):
                reader = Reader(url, sessions[username])
                for name in (*ORDERS, *AMOUNTS):
                    for order in (name, f"-{name}"):
                        measure_order(
                            figures,
                            reader,
                            username,
                            order,
                            chosen.requests,
                            is_remote=bool(chosen.database_url),
                        )
    print(f"load after: {describe_machine().rpartition(': ')[2]}")
    print("missed: " + ("; ".join(figures.missed_aims) or "nothing"))
    return 1 if figures.missed_aims else 0


if __name__ == "__main__":
    raise SystemExit(main())
