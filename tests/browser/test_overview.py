"""The overview and a project's page in a browser: charts are drawn under our policy, and what a
lead wants to know is two clicks away.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Site, a_page, a_site, axe, fits
from tests.cast import PASSWORD

ROWS = """
import json
from datetime import timedelta
from decimal import Decimal
from django.utils import timezone
from clusters.models import Cluster
from projects.models import Project
from tests.workloads.table_rows import a_workload
from workloads.models import Sample
from workloads.tasks.sampling import round_to_sample_time
Cluster.objects.update(is_local=False)
a, b = Project.objects.order_by("name")
waits = a_workload(a, "vit-huge", status="Pending", reason="No node has room for it.",
                   gpus_requested=8)
a_workload(a, "llama", gpus_allocated=Decimal(3), idle_since=timezone.now() - timedelta(minutes=50))
a_workload(b, "secret", gpus_allocated=Decimal(1))
a_workload(a, "broken", status="Failed", reason="OOMKilled", ended_at=timezone.now())
now = round_to_sample_time(timezone.now(), 60)
Sample.objects.bulk_create(
    Sample(project=p, at=now - timedelta(minutes=m), gpus_allocated=3, gpus_idle=1, gpus_quota=2000)
    for p in (a, b) for m in range(1500)
)
print(json.dumps({"waits": str(waits.pk)}))
"""


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("overview")) as running:
        yield running


@pytest.fixture(scope="module")
def waits(site: Site) -> str:
    """The id of a workload that waits."""
    return str(json.loads(site.server.python(ROWS))["waits"])


@pytest.fixture
def vera(browser: Browser, site: Site, waits: str) -> Iterator[Page]:
    with a_page(browser, site.url) as page:
        page.goto("/sign-in")
        page.get_by_label("User name").fill("vera")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/workloads")
        yield page


def test_a_lead_finds_out_in_two_clicks_why_it_waits_and_who_holds_the_gpus(
    vera: Page, waits: str
) -> None:
    vera.get_by_role("navigation", name="Main").get_by_role("link", name="Projects").click()
    vera.get_by_role("link", name="team-a").click()
    expect(vera.get_by_role("heading", name="Waiting, and why")).to_be_visible()
    expect(vera.get_by_text("No node has room for it.")).to_be_visible()
    holders = vera.get_by_role("region", name="Who holds the GPUs")
    expect(holders.get_by_text("Other projects")).to_be_visible()
    expect(holders.get_by_text("team-b")).to_have_count(0)
    expect(
        vera.get_by_role("img", name="GPUs: 3 GPUs allocated, 1 more than the quota of 2")
    ).to_be_visible()
    expect(vera.get_by_text("GPUs idle since")).to_be_visible()
    expect(vera.get_by_text("OOMKilled")).to_be_visible()
    expect(vera.locator("[data-chart] canvas")).to_be_visible()
    fits(vera)
    axe(vera)


def test_the_chart_is_drawn_and_has_its_numbers_as_a_table(vera: Page) -> None:
    vera.goto("/overview")
    expect(vera.locator("[data-chart] canvas")).to_be_visible()
    vera.get_by_text("As a table").click()
    table = vera.get_by_role("region", name="GPU allocation by project, as a table")
    expect(table.get_by_role("columnheader", name="team-a")).to_be_visible()
    expect(table.get_by_role("cell", name="3").first).to_be_visible()
    thousands = table.get_by_role("cell", name=re.compile(r"^\d,000$"))
    expect(thousands.first).to_be_visible()
    # As every other time of the page, whatever the browser's own language writes.
    expect(table.get_by_role("rowheader").first).to_have_text(re.compile(r"^\d+ \w+, \d\d:\d\d$"))
    fits(vera)
    axe(vera)


def test_the_legend_shows_a_line_as_it_is_drawn(vera: Page) -> None:
    vera.goto("/overview")
    legend = vera.locator("[data-chart-legend] li")
    expect(legend.filter(has_text="Quota").locator(".ch-swatch--dashed")).to_be_visible()
    expect(legend.filter(has_text="team-a").locator(".ch-swatch--area")).to_be_visible()


def test_the_ends_of_a_slider_within_a_day_are_times(vera: Page) -> None:
    def shorten(route: Route) -> None:
        page = route.fetch()
        shortened = re.sub(r'min="\d+" max="(\d+)"', r'min="\1" max="\1"', page.text())
        route.fulfill(response=page, body=shortened)

    vera.goto("/overview")
    least, most = vera.locator("[data-moment-least]"), vera.locator("[data-moment-most]")
    expect(most).to_have_text(re.compile(r"^\w+ \d+ \w+$|^\w+, \d+ \w+$"))
    vera.route("**/overview", shorten)
    vera.goto("/overview")
    for end in (least, most):
        expect(end).to_have_text(re.compile(r"^\d\d:\d\d$"))


def test_the_time_is_chosen_by_keyboard_and_stands_in_the_address(vera: Page) -> None:
    vera.goto("/overview")
    expect(vera.locator("[data-chart] canvas")).to_be_visible()
    vera.get_by_role("link", name="1h", exact=True).focus()
    vera.keyboard.press("Enter")
    expect(vera.get_by_role("link", name="1h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    vera.wait_for_url("**/overview?range=1h#allocation")
    expect(vera.get_by_role("link", name="CSV", exact=True)).to_have_attribute(
        "href", "/overview/allocation?range=1h&format=csv"
    )
    vera.reload()
    expect(vera.get_by_role("link", name="1h", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_without_scripts_the_figures_are_a_file(
    browser: Browser, site: Site, waits: str, vera: Page
) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    # What it gives it takes as well, though the two have types of their own.
    cookies: Any = vera.context.cookies()
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto("/overview?range=7d")
    expect(page.get_by_text("The same figures are in the CSV file.")).to_be_visible()
    expect(page.get_by_role("link", name="CSV", exact=True)).to_have_attribute(
        "href", "/overview/allocation?range=7d&format=csv"
    )
    context.close()
