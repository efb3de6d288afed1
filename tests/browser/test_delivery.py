"""Data delivery in a browser: bars and tables read well at every width, in light and in dark, and
keep themselves fresh.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import WIDTHS, Site, a_page, a_site, axe, fits, set_theme
from tests.cast import PASSWORD

ROWS = """
import json
from clusters.models import Cluster
from projects.models import Project, User
from tests.workloads.delivery_rows import a_preparing_workload, a_starving_workload
Cluster.objects.update(is_local=False)
project = Project.objects.order_by("name").first()
bob = User.objects.get(username="bob")
made = [a_preparing_workload(project, by=bob), a_starving_workload(project, by=bob),
    a_starving_workload(project, "of-many-ranks", ranks=300, by=bob)]
print(json.dumps([str(each.pk) for each in made]))
"""


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("delivery")) as running:
        yield running


@pytest.fixture(scope="module")
def rows(site: Site) -> list[str]:
    """The ids of a workload that prepares data, of one that waits for it, and of a wide one."""
    made: list[str] = json.loads(site.server.python(ROWS))
    return made


@pytest.fixture
def bob(browser: Browser, site: Site, rows: list[str]) -> Iterator[Page]:
    with a_page(browser, site.url) as page:
        page.goto("/sign-in")
        page.get_by_label("User name").fill("bob")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/workloads")
        yield page


def shoot(page: Page, name: str) -> None:
    """Keep pictures of the page at every width and in both themes where MUSTER_SHOTS says."""
    if folder := os.environ.get("MUSTER_SHOTS"):
        for dark in (False, True):
            set_theme(page, dark)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                path = Path(folder) / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                page.screenshot(path=path, full_page=True)


PROGRESS = """
from tests.workloads.table_rows import touch_workload
from workloads.models import DataPreparation, Workload
slow = Workload.objects.get(name="slow")
DataPreparation.objects.filter(workload=slow).update(prepared=16_384)
touch_workload(slow, reason="16,384 of 20,480 units are prepared, 80 %, about 1 min.")
"""


def test_what_is_prepared_is_a_bar_that_moves(bob: Page, site: Site, rows: list[str]) -> None:
    bar = bob.get_by_role("progressbar", name="Prepared data of slow: 12,400 of 20,480")
    expect(bar).to_be_visible()
    fits(bob)
    axe(bob)
    shoot(bob, "row")
    bob.goto(f"/workloads/{rows[0]}")
    expect(
        bob.get_by_text("12,400 of 20,480 units are prepared, 60 %, about 2 min")
    ).to_be_visible()
    expect(bob.get_by_role("progressbar", name="Prepared units")).to_be_visible()
    fits(bob)
    axe(bob)
    shoot(bob, "preparing")
    site.server.python(PROGRESS)
    expect(bob.get_by_text("16,384 of 20,480 units are prepared")).to_be_visible(timeout=90_000)


def test_who_waits_reads_well_everywhere(bob: Page, rows: list[str]) -> None:
    bob.goto(f"/workloads/{rows[1]}")
    part = bob.get_by_role("region", name="Data delivery")
    expect(part.get_by_text("GPUs waited 45 % of the last 10 min for data")).to_be_visible()
    expect(part.get_by_role("link", name="Add data workers")).to_be_visible()
    part.get_by_text("As a table").click()
    table = part.get_by_role("region", name="Ranks, as a table")
    expect(table.get_by_role("row")).to_have_count(3)
    fits(bob)
    axe(bob)
    shoot(bob, "starving")
    bob.goto(f"/workloads/{rows[2]}")
    expect(part.get_by_text("236 other ranks waited a smaller share")).to_be_visible()
    fits(bob)
    axe(bob)
    shoot(bob, "ranks")
    bob.goto(f"/workloads/{rows[1]}/pods")
    expect(bob.get_by_role("rowheader", name="Data workers")).to_be_visible()
    fits(bob)
    axe(bob)
    shoot(bob, "pods")
