"""Pods over time in a browser: the picture and its list read well at every width, in light and in
dark, and a notice of what was taken stays until it is dismissed.
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
from datetime import timedelta
from decimal import Decimal
from django.utils import timezone
from clusters.models import Cluster
from projects.models import Project, User
from tests.cast import a_spec
from tests.workloads.table_rows import a_pod, a_workload
from workloads.models import Event, Pod
from workloads.specs import Compute, ElasticSettings, Environment, Gpus, Setup, encode_spec
Cluster.objects.update(is_local=False)
a, b = Project.objects.order_by("name")
bob = User.objects.get(username="bob")
setup = Setup(environment=Environment(image="muster/elastic"),
    compute=Compute(gpus=Gpus(devices=1)))
spec = a_spec(a, "llama", setup=setup, workers=3, elastic=ElasticSettings(2, 4))
now = timezone.now()
begin = now - timedelta(minutes=42)
train = a_workload(a, "llama", by=bob, spec=encode_spec(spec), min_pods=2, max_pods=4,
    started_at=begin, requested_pods=4, running_pods=4, gpus_requested=4,
    gpus_allocated=Decimal(4), created_at=begin)
a_workload(a, "steady", by=bob, preemptible=False, gpus_allocated=Decimal(1))
def ran(role, index, start, end=None):
    a_pod(train, role, index, started_at=begin + timedelta(minutes=start),
          vanished_at=None if end is None else begin + timedelta(minutes=end))
ran("master", 0, 0.2)
ran("worker", 0, 0.3)
ran("worker", 1, 0.3, 11)
ran("worker", 2, 0.4, 11.2)
ran("worker", 1, 21)
ran("worker", 2, 21.2, 33)
ran("worker", 2, 37)
def create_event(minutes, reason, text="", cause=None, **more):
    Event.objects.create(workload=train, attempt=1, kind="scale",
        at=begin + timedelta(minutes=minutes),
        reason=reason, source="Muster", uid=f"lost-{minutes}", text=text, cause=cause, **more)
create_event(11, "Reclaimed", is_warning=True, notice_to=bob, cause={"action": "reclaim", "pods": 2,
    "gpus": "2", "namespace": b.namespace, "pods_before": 4, "is_open": False, "pods_after": 2,
    "resumed_step": 410, "lost_steps": 3, "lost_seconds": 6.2})
create_event(21, "ScaledUp", "It grows from 2 to 4 pods: there is room.")
create_event(33, "NodeLost", is_warning=True, cause={"action": "node-lost", "pods": 1, "gpus": "1",
    "nodes": ["gpu-node-3"], "pods_before": 4, "is_open": False, "pods_after": 3,
    "resumed_step": 1290, "lost_steps": 0, "lost_seconds": 9})
print(json.dumps({"train": str(train.pk), "project": a.pk}))
"""


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("pods")) as running:
        yield running


@pytest.fixture(scope="module")
def rows(site: Site) -> dict[str, str]:
    """The id of an elastic workload that lost pods, and its project's."""
    made: dict[str, str] = json.loads(site.server.python(ROWS))
    return made


@pytest.fixture
def bob(browser: Browser, site: Site, rows: dict[str, str]) -> Iterator[Page]:
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


def test_a_notice_stays_until_it_is_dismissed_and_is_shown_once(bob: Page) -> None:
    notice = bob.locator("[data-toast=notice]")
    expect(notice).to_contain_text("llama gave 2 GPUs to another project, went on")
    axe(bob)
    shoot(bob, "notice")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    bob.reload()
    expect(bob.get_by_role("heading", name="Workloads")).to_be_visible()
    expect(notice).to_have_count(0)


NOTICES = """
from projects.models import User
from workloads.models import Event, Workload
for number in range(4):
    Event.objects.create(workload=Workload.objects.get(name="steady"), attempt=1, kind="scale",
        uid=f"lost-many-{number}", notice_to=User.objects.get(username="bob"),
        cause={"action": "drain", "pods": 1, "nodes": ["gpu-node-1", "gpu-node-2"]})
"""


def test_many_notices_can_be_dismissed_at_four_hundred_percent(bob: Page, site: Site) -> None:
    site.server.python(NOTICES)
    bob.set_viewport_size({"width": 320, "height": 256})
    bob.reload()
    notices = bob.locator("[data-toast=notice]")
    expect(notices).to_have_count(4)
    box = bob.locator(".mu-toasts").bounding_box()
    assert box is not None
    assert box["y"] >= 0, "the first does not leave the view"
    for left in (3, 2, 1, 0):
        notices.first.get_by_role("button", name="Dismiss").click()
        expect(notices).to_have_count(left)


def test_the_picture_reads_well_everywhere(bob: Page, rows: dict[str, str]) -> None:
    bob.goto(f"/workloads/{rows['train']}")
    expect(
        bob.get_by_role(
            "img", name="Pods over time: 4 pods now, at most 4; minimum 2, maximum 4, room in"
        )
    ).to_be_visible()
    part = bob.get_by_role("region", name="Pods over time")
    expect(part.get_by_text("2 to 4 pods, the master among them")).to_be_visible()
    expect(part.get_by_text("went on with 2 of 4 pods from step 410")).to_be_visible()
    part.get_by_text("As a table").click()
    table = part.get_by_role("region", name="Pods over time, as a table")
    expect(table.get_by_role("row")).to_have_count(10)
    fits(bob)
    axe(bob)
    part.get_by_text("As a table").click()
    shoot(bob, "picture")


NEWS = """
from django.utils import timezone
from tests.workloads.table_rows import touch_workload
from workloads.models import Event, Workload
train = Workload.objects.get(name="llama")
Event.objects.create(workload=train, attempt=1, kind="scale", at=timezone.now(), reason="Drained",
    uid="lost-now", is_warning=True, cause={"action": "drain", "pods": 1, "nodes": ["gpu-node-1"]})
touch_workload(train)
"""


def test_the_picture_keeps_itself_fresh(bob: Page, site: Site, rows: dict[str, str]) -> None:
    bob.goto(f"/workloads/{rows['train']}")
    part = bob.get_by_role("region", name="Pods over time")
    expect(part.get_by_text("gpu-node-3")).to_be_visible()
    site.server.python(NEWS)
    expect(part.get_by_text("evicted from gpu-node-1 on request")).to_be_visible(timeout=90_000)


def test_the_project_says_what_may_be_taken(bob: Page, rows: dict[str, str]) -> None:
    bob.goto(f"/projects/{rows['project']}")
    expect(
        bob.get_by_text("3 GPUs over the quota: projects that are below theirs may take them back.")
    ).to_be_visible()
    fits(bob)
    axe(bob)
    shoot(bob, "project")
