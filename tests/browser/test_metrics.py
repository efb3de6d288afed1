"""The Metrics tab as its script draws it: charts, the strip of ranks, zoom, the table beside."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SignIn, Site, a_site, axe, fits

FILL = """
from datetime import timedelta
from django.utils import timezone
from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from projects.models import Project
from tests.workloads.table_rows import a_pod, a_workload
from workloads.metrics import recording
from workloads.models import Event
project = Project.objects.get(pk={team})
start = timezone.now().replace(microsecond=0) - timedelta(minutes=20)
workload = a_workload(project, "measured", created_at=start, started_at=start)
for number in range(8):
    a_pod(workload, index=number, rank=number, node=f"node-{{number}}", started_at=start)
use, memory = METRICS_BY_NAME["gpu_use"].code, METRICS_BY_NAME["memory"].code
for minute in range(20):
    # For two minutes nobody measured.
    if minute in (8, 9):
        continue
    pods = {{
        ("muster-team-a", f"measured-worker-{{rank}}"): {{
            use: 90.0 - 10 * rank, memory: 2.0**30 * (rank + 1)
        }}
        for rank in range(8)
    }}
    at = start + timedelta(minutes=minute, seconds=30)
    recording.record_sweep(workload.cluster_id, at, Sweep(pods=pods), "")
Event.objects.create(
    workload=workload, attempt=1, at=start + timedelta(minutes=9), kind="status", new="Resuming"
)
print(workload.pk)
"""


FILL_NODES = """
from datetime import timedelta
from django.utils import timezone
from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster, Node, NodePool
from projects.models import Project
from workloads.metrics import recording
cluster = Project.objects.get(pk={team}).cluster
pool = NodePool.objects.create(
    cluster=cluster, name="measured", label_key="kind", label_value="measured"
)
names = [f"measured-{{number}}" for number in range(3)]
for name in names:
    Node.objects.create(cluster=cluster, name=name, labels={{"kind": "measured"}}, gpus=4)
Cluster.objects.update(measured_at=None)
use, xid, errors = (METRICS_BY_NAME[name].code for name in ("gpu_use", "xid", "ecc_errors"))
for minute in range(20):
    nodes = {{
        name: {{use: 30.0 * (1 + place), xid: 0.0, errors: 2.0 * (place == 2 and minute > 15)}}
        for place, name in enumerate(names)
    }}
    at = timezone.now().replace(microsecond=0) - timedelta(minutes=20 - minute)
    recording.record_sweep(cluster.pk, at, Sweep(nodes=nodes), "")
print(pool.pk)
"""


MEASURE_AGAIN = """
from django.utils import timezone
from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster
from workloads.metrics import recording
from workloads.models import Workload
workload = Workload.objects.get(name="measured")
Cluster.objects.update(measured_at=None)
pods = {
    ("muster-team-a", f"measured-worker-{rank}"): {METRICS_BY_NAME["gpu_use"].code: 93.0 + rank}
    for rank in range(8)
}
at = timezone.now().replace(microsecond=0)
recording.record_sweep(workload.cluster_id, at, Sweep(pods=pods), "")
"""


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("metrics")) as running:
        yield running


@pytest.fixture(scope="module")
def sessions() -> dict[str, object]:
    return {}


@pytest.fixture(scope="module")
def metrics_path(site: Site) -> str:
    """The path of a workload whose eight ranks were measured for twenty minutes."""
    return f"/workloads/{site.server.python(FILL.format(team=site.team_a)).split()[-1]}/metrics"


ARE_DRAWN = """() => [...document.querySelectorAll('.mx canvas')].every((canvas) =>
  canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean))"""
PICTURES = "[...document.querySelectorAll('.mx canvas')].map((canvas) => canvas.toDataURL())"
POLLED = 500
"""Milliseconds between two looks: reading pictures takes the page's own time."""


def read_pictures(page: Page) -> Any:
    """The strip and the charts as texts, once none of them is empty."""
    page.wait_for_function(ARE_DRAWN, polling=POLLED)
    return page.evaluate(PICTURES)


def test_each_metric_has_its_chart_and_each_rank_its_row(
    sign_in: SignIn, metrics_path: str
) -> None:
    page = sign_in("bob", at=metrics_path)
    charts = page.locator(".mx-card")
    expect(charts).to_have_count(2)
    expect(charts.first.get_by_role("heading")).to_contain_text("GPU use")
    expect(charts.first.get_by_role("heading")).to_contain_text("55 % (20 % to 90 %)")
    expect(charts.last.get_by_role("heading")).to_contain_text("4.5 GiB (1 GiB to 8 GiB)")
    expect(page.locator("[data-metrics-words]")).to_contain_text("8 pods by rank")
    assert len(read_pictures(page)) == 3
    page.get_by_text("The same as a table").click()
    table = page.get_by_role("region", name="Figures over time")
    expect(table.locator("tbody tr")).to_have_count(18)
    expect(table.locator("tbody tr").first.locator("td")).to_have_text(
        ["20 %", "55 %", "90 %", "1 GiB", "4.5 GiB", "8 GiB"]
    )
    axe(page)
    fits(page)


def test_an_open_page_adds_what_is_new(sign_in: SignIn, site: Site, metrics_path: str) -> None:
    page = sign_in("bob", at=metrics_path)
    heading = page.locator(".mx-card").first.get_by_role("heading")
    expect(heading).to_contain_text("(20 % to 90 %)")
    with page.expect_response(lambda answer: "&after=" in answer.url, timeout=60_000) as response:
        site.server.python(MEASURE_AGAIN)
    assert response.value.ok
    expect(heading).to_contain_text("(93 % to 100 %)", timeout=60_000)
    page.get_by_text("The same as a table").click()
    rows = page.get_by_role("region", name="Figures over time").locator("tbody tr")
    expect(rows).to_have_count(19)


def test_a_row_that_is_clicked_is_drawn_in_every_chart(sign_in: SignIn, metrics_path: str) -> None:
    page = sign_in("bob", at=metrics_path)
    picture = page.locator(".mx-strip__picture")
    expect(picture).to_be_visible()
    before = read_pictures(page)
    box = picture.bounding_box()
    assert box is not None
    # The third of eight rows.
    picture.hover(position={"x": box["width"] * 0.9, "y": box["height"] * 2.5 / 8})
    expect(page.locator("[data-metrics-words]")).to_contain_text("Rank 2: measured-worker-2")
    expect(page.locator("[data-metrics-words]")).to_contain_text("on node-2")
    expect(page.locator("[data-metrics-words]")).to_contain_text("70 %")
    picture.click(position={"x": box["width"] * 0.9, "y": box["height"] * 2.5 / 8})
    expect(page.locator("[data-metrics-pod]")).to_have_value(
        page.locator("[data-metrics-pod] option", has_text="Rank 2").get_attribute("value") or "?"
    )
    page.wait_for_function(
        f"before => {PICTURES}.every((picture, at) => !at || picture !== before[at])",
        arg=before,
        polling=POLLED,
    )
    page.locator("[data-metrics-metric]").select_option(label="Memory")
    expect(page.locator("[data-metrics-scale]")).to_have_text("0 to 8 GiB")


def test_a_drag_zooms_all_charts_and_reset_goes_back(sign_in: SignIn, metrics_path: str) -> None:
    page = sign_in("bob", at=metrics_path)
    reset = page.get_by_role("button", name="Reset zoom")
    over = page.locator(".mx-card .u-over").first
    expect(over).to_be_visible()
    expect(reset).to_be_hidden()
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    with page.expect_response(lambda answer: "since=" in answer.url):
        page.mouse.move(box["x"] + box["width"] * 0.2, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=5)
        page.mouse.up()
    expect(reset).to_be_visible()
    expect(page.locator("[data-metrics-csv]")).to_have_attribute("href", re.compile("since="))
    with page.expect_response(lambda answer: "range=1h" in answer.url):
        reset.click()
    expect(reset).to_be_hidden()


def test_a_range_is_in_the_address(sign_in: SignIn, metrics_path: str) -> None:
    page = sign_in("bob", at=metrics_path)
    page.get_by_role("link", name="24 h", exact=True).click()
    expect(page).to_have_url(re.compile("range=24h"))
    expect(page.get_by_role("link", name="24 h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    page.reload()
    expect(page.get_by_role("link", name="24 h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_it_is_in_the_pane_as_well(sign_in: SignIn, metrics_path: str) -> None:
    page = sign_in("bob", at="/workloads")
    page.get_by_role("link", name="measured", exact=True).click()
    page.locator("#drawer").get_by_role("link", name="Metrics", exact=True).click()
    expect(page.locator("#drawer .mx-card")).to_have_count(2)


def test_a_pool_has_a_row_for_each_node_and_keeps_its_address(sign_in: SignIn, site: Site) -> None:
    pool = site.server.python(FILL_NODES.format(team=site.team_a)).split()[-1]
    page = sign_in("alice", at=f"/node-pools/{pool}")
    charts = page.locator(".mx-card")
    # There was no Xid, so that it has no chart.
    expect(charts).to_have_count(3)
    expect(charts.first.get_by_role("heading")).to_contain_text("60 % (30 % to 90 %)")
    expect(charts.nth(1).get_by_role("heading")).to_contain_text("Allocated GPUs")
    expect(charts.last.get_by_role("heading")).to_contain_text("Uncorrectable ECC errors")
    expect(charts.last.get_by_role("heading")).to_contain_text("0 (0 to 2)")
    expect(page.locator("[data-metrics-words]")).to_contain_text("3 nodes, the first above")
    assert len(read_pictures(page)) == 4
    page.locator("[data-metrics-pod]").select_option(label="measured-1")
    page.get_by_role("link", name="6 h").click()
    expect(page.get_by_role("link", name="6 h")).to_have_attribute("aria-current", "true")
    assert page.url.endswith(f"/node-pools/{pool}#metrics")
    axe(page)
    fits(page)


def test_that_nothing_was_measured_is_said_once(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", at=f"/projects/{site.team_b}")
    card = page.locator("#metrics")
    expect(card.get_by_text("Nothing has been measured of its pods in this time.")).to_be_visible()
    expect(card.get_by_text("Nothing")).to_have_count(1)
