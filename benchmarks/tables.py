"""How long the pages of the table take, through HTTP on loopback."""

import re
from urllib.parse import quote

from figures import Aim, Figures
from stage import Browserless, Stage

PEOPLE = (("admin", "administrator"), ("member-of-all", "member of 20 projects"))
FAR = 1000
"""The page that is far; the last one of smaller tables."""
SHOWN = 50
"""Rows of a page, as console.pagination has it."""
WARM = 5
NEXT = re.compile(rb'rel="next" href="([^"]+)"')
AIM = Aim(60)


def measure(figures: Figures, stage: Stage, requests: int) -> None:
    """Each page many times, by an administrator and by somebody whose projects narrow it; and pages
    that nobody has seen before.
    """
    far = min(FAR, int(stage.inside("rows", "admin")) // SHOWN)
    for username, title in PEOPLE:
        (cursor,) = stage.inside("cursors", username, str(far))
        addresses = {
            "first page": "/workloads",
            f"page {far}": f"/workloads?page={quote(cursor)}",
            "filtered by status": "/workloads?status=Failed",
            "filtered by two statuses": "/workloads?status=Failed&status=Stopped",
            "searched, many found": "/workloads?q=bert",
            "searched, none found": "/workloads?q=nothing-like-it",
            "by name": "/workloads?sort=name",
        }
        person = Browserless(stage, username)
        for what, address in addresses.items():
            for _ in range(WARM):
                person.get(address)
            times = [person.get(address)[0] for _ in range(requests)]
            figures.spread(
                f"{what}, {title}",
                times,
                95,
                aim=AIM if what in ("first page", f"page {far}") else None,
            )
        figures.spread(
            f"pages seen for the first time, {title}",
            unseen(stage, person, username, far // 2, requests),
            95,
        )
        counts = stage.inside("statements", username, *addresses.values())
        for what, count in zip(addresses, counts, strict=True):
            figures.put(f"queries, {what}, {title}", count)


def unseen(
    stage: Stage, person: Browserless, username: str, beginning: int, requests: int
) -> list[float]:
    """Turning over page after page: the rows of each are made into HTML for the first time."""
    (cursor,) = stage.inside("cursors", username, str(max(2, beginning)))
    address = f"/workloads?page={quote(cursor)}"
    times = []
    for _ in range(requests):
        took, body = person.get(address)
        times.append(took)
        found = NEXT.search(body)
        if found is None:
            break
        address = found[1].decode().replace("&amp;", "&")
    return times
