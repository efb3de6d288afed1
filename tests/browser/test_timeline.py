"""The timeline in a browser: zoom, keys, what is said under the pointer, the table, the file."""

import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits

ROWS = """
from projects.models import Project, User
from tests.workloads.timeline_rows import EventfulWorkload
a, b = Project.objects.filter(name__in=("team-a", "team-b")).order_by("name")
made = EventfulWorkload(a, b, User.objects.get(username="bob"), "eventful")
print(made.workload.pk)
"""


@pytest.fixture(scope="module")
def timeline_path(site: Site) -> str:
    return f"/workloads/{site.server.python(ROWS).split()[-1]}/timeline"


def read_ticks(page: Page) -> str:
    """Return the axis: its words, and where they are."""
    return page.locator("[data-timeline-ticks]").inner_html()


def test_the_picture_zooms_speaks_and_is_a_file(
    sign_in: SignIn, timeline_path: str, tmp_path: Path
) -> None:
    page = sign_in("bob", at=timeline_path)
    tip = page.locator("[data-timeline-tip]")
    reclaim = page.locator(".tl-row--pod-changes .tl-shape").first
    reclaim.hover()
    # To whom depends on what tests before this one let bob see.
    expect(tip).to_contain_text(re.compile("Gave 2 GPUs to (another project|team-b)"))
    picture = page.locator("[data-timeline-picture]")
    whole = read_ticks(page)
    assert not re.search("[AP]M", whole), "as every other time of the page"

    # Buttons, and the wheel where one points.
    page.get_by_role("button", name="Zoom in").click()
    assert read_ticks(page) != whole
    # The picture may have come anew meanwhile, with a later end: it is whole, not the same.
    page.get_by_role("button", name="Show all").click()
    expect(picture).not_to_have_attribute("data-zoomed", "")
    reclaim.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    expect(picture).to_have_attribute("data-zoomed", "")

    # What is zoomed can be dragged.
    zoomed = read_ticks(page)
    box = page.locator(".tl-row--pod-count .tl-lane").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] + 10, steps=4)
    page.mouse.up()
    assert read_ticks(page) != zoomed
    page.get_by_role("button", name="Show all").click()

    # One shape is in the order of tabs; arrows go on from it.
    expect(page.locator(".tl-shape[tabindex='0']")).to_have_count(1)
    page.locator(".tl-row--status .tl-shape").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tl-shape:focus")).to_have_attribute(
        "aria-label", re.compile(r"^Pending\. ")
    )
    page.keyboard.press("ArrowDown")
    expect(tip).to_contain_text("Attempt 1, asked for by bob: Failed.")
    page.keyboard.press("Enter")
    expect(picture).to_have_attribute("data-zoomed", "")
    page.keyboard.press("Home")
    expect(picture).not_to_have_attribute("data-zoomed", "")
    page.keyboard.press("Escape")

    page.get_by_text("The same as a table").click()
    table = page.get_by_role("region", name="The timeline as a table")
    straggler = table.get_by_role("rowheader", name="Straggler", exact=True)
    expect(straggler).to_have_count(1)
    # What is opened stays so when the picture comes anew.
    with page.expect_response(re.compile("timeline-lanes")):
        page.evaluate("htmx.trigger('#timeline', 'muster:changed')")
    page.wait_for_timeout(300)
    expect(straggler).to_have_count(1)

    with page.expect_download() as download:
        page.get_by_role("link", name="SVG").click()
    path = tmp_path / "timeline.svg"
    download.value.save_as(path)
    assert download.value.suggested_filename == "eventful-timeline.svg"
    assert path.read_text().startswith("<?xml")
    axe(page)
    fits(page)


def test_chosen_ranks_are_in_the_address_and_the_pane_has_it_too(
    sign_in: SignIn, timeline_path: str
) -> None:
    page = sign_in("bob", at=timeline_path)
    page.get_by_label("Ranks", exact=True).fill("2-3")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".tl-row--rank")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"/timeline\?ranks=2-3$"))
    page.get_by_role("link", name="All ranks").click()
    expect(page.locator(".tl-row--rank")).to_have_count(6)
    page.goto("/workloads")
    page.get_by_role("link", name="eventful", exact=True).click()
    page.locator("#drawer").get_by_role("link", name="Timeline", exact=True).click()
    expect(page.locator("#drawer [data-timeline-buttons]")).to_be_visible()
    expect(page.locator("#drawer .tl-row--rank")).to_have_count(6)


GRID_PLACES = "lines => lines.map((line) => line.getAttribute('x1'))"
BEFORE_AND_AFTER_SUMMER = """
from datetime import UTC, datetime
from projects.models import Project
from tests.workloads.table_rows import a_workload
begin, end = datetime(2026, 10, 20, 9, tzinfo=UTC), datetime(2026, 11, 5, 9, tzinfo=UTC)
workload = a_workload(
    Project.objects.get(name="team-a"), "autumn", status="Completed",
    created_at=begin, started_at=begin, status_at=end, ended_at=end,
)
print(workload.pk)
"""


def test_days_begin_at_midnight_also_after_clocks_went_back(sign_in: SignIn, site: Site) -> None:
    key = site.server.python(BEFORE_AND_AFTER_SUMMER).split()[-1]
    page = sign_in("bob")
    clock = page.context.new_cdp_session(page)
    clock.send("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    page.goto(f"/workloads/{key}/timeline")
    expect(page.locator("[data-timeline-zone]")).to_have_text("Europe/Berlin")
    texts = page.locator("[data-timeline-ticks] text")
    days = [datetime.strptime(f"{each} 2026", "%d %b %Y") for each in texts.all_text_contents()]
    assert len(days) >= 3
    assert days[0].month == 10
    assert days[-1].month == 11
    assert len({later - earlier for earlier, later in pairwise(days)}) == 1, days


def test_hours_go_on_through_a_change_of_clocks(sign_in: SignIn, site: Site) -> None:
    hours = BEFORE_AND_AFTER_SUMMER
    for before, after in (
        ("2026, 10, 20, 9", "2026, 10, 25, 0"),
        ("2026, 11, 5, 9", "2026, 10, 25, 3"),
        ("autumn", "night"),
    ):
        hours = hours.replace(before, after)
    key = site.server.python(hours).split()[-1]
    page = sign_in("bob")
    clock = page.context.new_cdp_session(page)
    clock.send("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    page.goto(f"/workloads/{key}/timeline")
    expect(page.locator("[data-timeline-zone]")).to_have_text("Europe/Berlin")
    lines = page.locator("[data-timeline-grid] line")
    places = [float(each.removesuffix("%")) for each in lines.evaluate_all(GRID_PLACES)]
    assert len(places) >= 3
    distances = [later - earlier for earlier, later in pairwise(places)]
    assert max(distances) - min(distances) < 0.1, places


CUT_LABELS = """labels => labels
  .filter(label => label.getAttribute("visibility") !== "hidden")
  .filter(label => label.querySelector("text").getBoundingClientRect().right
    > label.parentElement.querySelector(".tl-bar").getBoundingClientRect().right)
  .map(label => label.textContent)"""


def test_no_label_is_cut_on_a_small_screen(sign_in: SignIn, timeline_path: str) -> None:
    page = sign_in("bob", at=timeline_path)
    page.set_viewport_size({"width": 360, "height": 740})
    labels = page.locator(".tl-shape .tl-label")
    expect(labels.filter(visible=True).first).to_be_visible()
    page.wait_for_timeout(200)
    assert labels.evaluate_all(CUT_LABELS) == []
    assert labels.filter(has_text="Attempt").first.is_visible(), "what fits stays"
