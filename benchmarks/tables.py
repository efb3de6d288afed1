"""Measures how long the pages of the workloads table take, through HTTP on loopback."""

import re
from urllib.parse import quote

from figures import Aim, Figures
from stage import HttpReader, Stage

PEOPLE = (("admin", "administrator"), ("member-of-all", "member of 20 projects"))
FAR = 1000
"""The number of the far page; the last one of smaller tables."""
SHOWN = 50
"""Rows of a page, as console.pagination has it."""
WARM = 5
NEXT = re.compile(rb'rel="next" href="([^"]+)"')
AIM = Aim(60)


def measure_pages(figures: Figures, stage: Stage, requests: int) -> None:
    """Measure each page many times, and pages that nobody has seen before.

    An administrator and a user with few projects load them.
    """
    far = min(FAR, int(stage.run_inside("count_rows", "admin")) // SHOWN)
    for username, title in PEOPLE:
        (cursor,) = stage.run_inside("list_cursors", username, str(far))
        addresses = {
            "first page": "/workloads",
            f"page {far}": f"/workloads?page={quote(cursor)}",
            "filtered by status": "/workloads?status=Failed",
            "filtered by two statuses": "/workloads?status=Failed&status=Stopped",
            "searched, many found": "/workloads?q=bert",
            "searched, none found": "/workloads?q=nothing-like-it",
            "by name": "/workloads?sort=name",
        }
        person = HttpReader(stage, username)
        for page_name, address in addresses.items():
            for _ in range(WARM):
                person.get(address)
            times = [person.get(address)[0] for _ in range(requests)]
            figures.add_percentiles(
                f"{page_name}, {title}",
                times,
                95,
                aim=AIM if page_name in ("first page", f"page {far}") else None,
            )
        figures.add_percentiles(
            f"pages seen for the first time, {title}",
            measure_unseen_pages(stage, person, username, far // 2, requests),
            95,
        )
        counts = stage.run_inside("count_queries", username, *addresses.values())
        for page_name, count in zip(addresses, counts, strict=True):
            figures.add(f"queries, {page_name}, {title}", count)


def measure_unseen_pages(
    stage: Stage, person: HttpReader, username: str, beginning: int, requests: int
) -> list[float]:
    """Turn over page after page: their rows are rendered for the first time."""
    (cursor,) = stage.run_inside("list_cursors", username, str(max(2, beginning)))
    address = f"/workloads?page={quote(cursor)}"
    times = []
    for _ in range(requests):
        took, body = person.get(address)
        times.append(took)
        next_link = NEXT.search(body)
        if next_link is None:
            break
        address = next_link[1].decode().replace("&amp;", "&")
    return times
