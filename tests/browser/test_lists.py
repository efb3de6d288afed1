"""Tables that are searched and filtered where they stand: what one types stays, files have the same
rows as the page, and a double click acts once.
"""

import re
import time

from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import SignIn, Site

FAILED_ROWS = """
from projects.models import Project
from tests.workloads.table_rows import a_workload
for number in range(2):
    a_workload(Project.objects.get(name="team-a"), f"twice-{number}", status="Failed")
"""


def hold_first(page: Page, address: str) -> list[Route]:
    """Hold the first request of this address, and no other: it is in the list once it is made."""
    routes: list[Route] = []
    page.route(address, lambda route: route.continue_() if routes else routes.append(route))
    return routes


def wait_for_route(page: Page, routes: list[Route]) -> Route:
    """Return the first of the routes, once there is one. Raises AssertionError after 30 s."""
    deadline = time.monotonic() + 30
    while not routes:
        assert time.monotonic() < deadline, "the page did not ask"
        page.evaluate("null")
    return routes[0]


def test_what_is_typed_while_the_rows_come_stays_and_is_searched_for(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/audit")
    routes = hold_first(page, "**/audit?q=no-such&*")
    search = page.get_by_label("Search by subject, name or id")
    search.fill("no-such")
    wait_for_route(page, routes).continue_()
    search.press_sequentially("-subject", delay=20)
    expect(search).to_have_value("no-such-subject")
    expect(search).to_be_focused()
    page.wait_for_url("**/audit?q=no-such-subject&*")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    expect(search).to_have_value("no-such-subject")


def test_leaving_the_search_asks_for_nothing(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/audit")
    page.get_by_label("Search by subject, name or id").fill("no-such")
    page.wait_for_url("**/audit?q=no-such&*")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.get_by_text("Columns", exact=True).click()
    expect(page.get_by_role("button", name="Show these")).to_be_visible()
    page.get_by_role("combobox", name="Status", exact=True).select_option("failed")
    page.wait_for_url("**/audit?*status=failed*")
    assert [url for url in urls if "/audit?" in url and "status=failed" not in url] == []


def test_the_columns_are_within_a_narrow_window(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/audit")
    page.set_viewport_size({"width": 360, "height": 900})
    page.get_by_text("Columns", exact=True).click()
    box = page.get_by_role("form", name="Columns").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_no_title_pushes_columns_out_of_sight(sign_in: SignIn, site: Site) -> None:
    site.server.python(
        "from environments.builtin_assets import ensure_builtin_assets; ensure_builtin_assets()"
    )
    page = sign_in("alice", at="/compute-resources")
    page.set_viewport_size({"width": 1280, "height": 900})
    table = page.get_by_role("region", name="Compute resources")
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_the_keyboard_types_a_whole_day_into_a_filter_of_the_audit_log(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/audit")
    day = page.get_by_label("From", exact=True)
    day.focus()
    for key in "11282026":
        page.keyboard.press(key)
        # A day of the year 2 is a day, too: its rows come before the next key.
        if typed := day.input_value():
            page.wait_for_url(f"**/audit?*from={typed}*")
    expect(day).to_have_value("2026-11-28")


def test_the_files_of_the_audit_log_have_the_rows_that_are_shown(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/audit")
    page.get_by_role("combobox", name="Status", exact=True).select_option("failed")
    page.wait_for_url("**/audit?*status=failed*")
    for file in ("CSV", "JSON"):
        link = page.get_by_role("link", name=file, exact=True)
        expect(link).to_have_attribute("href", re.compile("status=failed"))


def test_the_question_before_many_are_deleted_names_the_one_or_counts_them(
    sign_in: SignIn, site: Site
) -> None:
    site.server.python(FAILED_ROWS.replace("twice", "counted"))
    page = sign_in("bob", at="/workloads?q=counted-")
    boxes = page.locator("[data-rows] [data-choose]")
    delete = page.locator("#bulk").get_by_role("button", name="Delete")
    boxes.first.check()
    only = page.locator("[data-rows] tr").first.locator("a[id^=name-]").inner_text()
    delete.click()
    page.get_by_role("alertdialog", name=f"Delete {only}?").press("Escape")
    page.get_by_label("Choose all rows of this page").check()
    delete.click()
    expect(
        page.get_by_role("alertdialog", name=f"Delete {boxes.count()} workloads?")
    ).to_be_visible()


def test_a_double_click_acts_once_on_what_is_chosen(sign_in: SignIn, site: Site) -> None:
    site.server.python(FAILED_ROWS)
    page = sign_in("bob", at="/workloads?q=twice-")
    routes = hold_first(page, "**/workloads/bulk")
    posts: list[Request] = []
    page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    for box in page.locator("[data-rows] [data-choose]").all():
        box.check()
    page.locator("#bulk").get_by_role("button", name="Stop").dblclick()
    wait_for_route(page, routes).continue_()
    expect(page.locator("#bulk-results")).to_contain_text("Stop: ")
    # Whatever was asked beside has been sent by when the table has asked for news.
    page.get_by_label("Search by name").fill("twice-1")
    expect(page.locator("[data-rows] tr")).to_have_count(1)
    assert len(posts) == 1
    expect(page.locator("#toasts")).not_to_contain_text("No workload is chosen")
