"""The table of workloads in a browser: columns, filters, and a person's views."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SignIn, Site, a_site, axe, fits

ROWS = """
from django.utils import timezone
from projects.models import Project
from tests.workloads.table_rows import a_workload
team = Project.objects.get(pk={team})
for number in range(3):
    a_workload(team, f"vision-{{number}}", image=f"registry.example.com/vision:{{number}}",
               command="python train.py --lr 0.1", labels="team=vision, tier=gold",
               cpu_requested=number + 1, memory_requested=(number + 1) << 30, priority="high")
a_workload(team, "text", image="text:1")
"""
CHANGE = """
from tests.workloads.table_rows import touch_workload
from workloads.models import Workload
touch_workload(Workload.objects.get(name="vision-1"), image="vision:new")
"""

LONG_WORDS = """
from datetime import timedelta
from django.utils import timezone
from projects.models import Project, User
from tests.workloads.table_rows import a_workload
ended_at = timezone.now() - timedelta(minutes=47)
long_ago = ended_at - timedelta(minutes=12)
a_workload(Project.objects.get(pk={team}), "tokenize-corpus-2026-11", status="Failed",
           reason="A pod failed.", ended="1 failed, 2 stopped", status_at=ended_at,
           ended_at=ended_at, created_at=long_ago, started_at=long_ago,
           by=User.objects.get(username="mallory"))
"""
FORGET_LONG_WORDS = """
from workloads.models import Workload
Workload.objects.filter(name="tokenize-corpus-2026-11").delete()
"""


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("grid")) as running:
        running.server.python(ROWS.format(team=running.team_a))
        yield running


@pytest.fixture(scope="module")
def sessions() -> dict[str, object]:
    return {}


def names(page: Page) -> list[str]:
    return page.locator("[data-rows] [id^=name-]").all_inner_texts()


def heads(page: Page) -> list[str]:
    return [
        str(each.get_attribute("data-column")) for each in page.locator("#workloads thead th").all()
    ]


def open_panel(page: Page, words: str) -> None:
    page.locator("summary").filter(has_text=words).click()


def test_the_usual_columns_fit_beside_the_navigation_of_a_laptop(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/workloads")
    page.set_viewport_size({"width": 1280, "height": 800})
    box = page.get_by_role("region", name="Table of workloads")
    expect(box.locator("[data-column=type]").last).to_contain_text("Distributed")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_long_words_of_a_row_leave_the_usual_columns_in_sight(sign_in: SignIn, site: Site) -> None:
    site.server.python(LONG_WORDS.format(team=site.team_a))
    page = sign_in("bob", at="/workloads")
    page.set_viewport_size({"width": 1280, "height": 800})
    box = page.get_by_role("region", name="Table of workloads")
    row = page.locator("tr", has_text="tokenize-corpus-2026-11")
    expect(row).to_contain_text("1 failed, 2 stopped")
    over = box.evaluate("box => box.scrollWidth - box.clientWidth")
    # The tests after this one count the rows.
    site.server.python(FORGET_LONG_WORDS)
    assert over <= 0


def test_a_filter_of_the_panel_narrows_the_rows_and_is_taken_away(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/workloads")
    open_panel(page, "More filters")
    fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("textbox", name="Image").fill("vision")
    page.get_by_role("textbox", name="Image").press("Tab")
    # A further change would break the request off, which htmx calls an error.
    page.wait_for_url(lambda url: "image=vision" in url)
    expect(page.locator("[data-rows] tr")).to_have_count(3)
    page.get_by_label("CPU request, at least").fill("2")
    page.get_by_label("CPU request, at least").press("Tab")
    expect(page.locator("[data-rows] tr")).to_have_count(2)
    assert set(names(page)) == {"vision-1", "vision-2"}
    expect(page.locator(".wl-more [data-pick-count]")).to_have_text("2")
    assert "image=vision" in page.url
    axe(page)
    page.set_viewport_size({"width": 360, "height": 800})
    axe(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Image: vision").click()
    page.wait_for_url(lambda url: "image=" not in url)
    assert "cpu_from=2" in page.url
    page.get_by_role("link", name="CPU request, at least: 2").click()
    expect(page.locator("[data-rows] tr")).to_have_count(4)


def test_chosen_columns_stay_in_rows_that_change(sign_in: SignIn, site: Site) -> None:
    page = sign_in("bob", at="/workloads")
    page.goto("/workloads?column=name,image,labels&sort=name")
    row = page.locator("tr", has=page.get_by_role("link", name="vision-1", exact=True))
    expect(row.locator("[data-column=image]")).to_have_text("registry.example.com/vision:1")
    site.server.python(CHANGE)
    expect(row.locator("[data-column=image]")).to_have_text("vision:new")
    cells = row.locator("th, td").all()
    assert [each.get_attribute("data-column") for each in cells] == heads(page)
    assert heads(page) == ["check", "name", "image", "labels"]
    # Many columns scroll in their box, and the page does not.
    page.get_by_label("Columns").first.click()
    for title in ("Command", "Memory request"):
        page.locator("#columns").get_by_label(title, exact=True).check()
        expect(page.locator("#workloads thead").get_by_text(title, exact=True)).to_be_visible()
    fits(page)
    axe(page)


def test_a_view_is_saved_changed_and_deleted_where_the_table_is(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/workloads")
    page.goto("/workloads?column=name,image&view=all")
    page.get_by_label("Search by name").fill("vision")
    page.wait_for_url(re.compile("q=vision"))
    page.locator("#view-actions").click()
    page.locator("#view-save").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Vision")
    dialog.get_by_label("Begin with this view").check()
    axe(page)
    dialog.get_by_role("button", name="Save view").click()
    current = page.locator(".wl-views [aria-current=page]")
    expect(current).to_have_text("Vision")
    assert heads(page) == ["check", "name", "image"]
    expect(page.get_by_label("Search by name")).to_have_value("vision")
    # The table begins with it, and its rows of another search are its new content.
    page.goto("/workloads")
    expect(current).to_have_text("Vision")
    page.get_by_label("Search by name").fill("text")
    page.wait_for_url(re.compile("q=text"))
    assert "view=" in page.url
    page.locator("#view-actions").click()
    fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    axe(page)
    page.locator("#view-edit").click()
    dialog.get_by_label("Name").fill("Text")
    dialog.get_by_label("Replace its columns").check()
    dialog.get_by_role("button", name="Save view").click()
    expect(current).to_have_text("Text")
    expect(page.get_by_label("Search by name")).to_have_value("text")
    page.locator("#view-actions").click()
    page.locator("#view-delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(current).to_have_text("Workloads")
    expect(page.locator(".wl-views__list a")).to_have_text(["Workloads", "Deleted"])


def test_keys_search_move_open_and_make_new(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/workloads")
    page.goto("/workloads?sort=name")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="text", exact=True)).to_be_focused()
    for _ in range(4):
        page.keyboard.press("j")
    expect(page.get_by_role("link", name="vision-2", exact=True)).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name="vision-1", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#drawer").get_by_role("heading", name="vision-1")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    axe(page)
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("/")
    search = page.get_by_label("Search by name")
    expect(search).to_be_focused()
    page.keyboard.type("jn/?")
    expect(search).to_have_value("jn/?")
    page.goto("/workloads")
    page.keyboard.press("n")
    page.wait_for_url(re.compile("/workloads/new/"))


def test_a_row_that_changes_or_leaves_keeps_the_place_of_the_keys(
    sign_in: SignIn, site: Site
) -> None:
    page = sign_in("bob", at="/workloads")
    page.goto("/workloads?column=name,project,image&sort=name")
    for _ in range(3):
        page.keyboard.press("j")
    name = page.get_by_role("link", name="vision-1", exact=True)
    expect(name).to_be_focused()
    row = page.locator("[data-rows] tr").nth(2)
    site.server.python(CHANGE.replace("vision:new", "vision:newer"))
    expect(row.locator("[data-column=image]")).to_have_text("vision:newer")
    expect(name).to_be_focused()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="vision-2", exact=True)).to_be_focused()
    # The checkbox of a row has no id of its own, and keeps the focus, too.
    row.locator("[data-choose]").focus()
    site.server.python(CHANGE.replace("vision:new", "vision:newest"))
    expect(row.locator("[data-column=image]")).to_have_text("vision:newest")
    expect(row.locator("[data-choose]")).to_be_focused()
    name.focus()
    # As a tidied-up table does it: the row has gone, and the focus with it.
    remove_row(page, 2)
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("k")
    expect(page.get_by_role("link", name="vision-0", exact=True)).to_be_focused()
    remove_row(page, 1)
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="vision-2", exact=True)).to_be_focused()


def remove_row(page: Page, number: int) -> None:
    """Remove a row in one step: an update that came between finding and removing would have put
    another in its place.
    """
    page.evaluate("number => document.querySelectorAll('[data-rows] tr')[number].remove()", number)


def test_keys_are_dead_in_the_drawer(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/workloads")
    page.goto("/workloads?sort=name")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    heading = page.locator("#drawer").get_by_role("heading", name="text", exact=True)
    expect(heading).to_be_focused()
    address = page.url

    def press_all() -> None:
        for key in ("j", "k", "n", "/", "?"):
            page.keyboard.press(key)
        assert page.url == address
        expect(page.locator("#keys")).to_be_hidden()
        expect(page.locator("[data-rows] a:focus, [data-key=search]:focus")).to_have_count(0)

    press_all()
    # Who clicks on its words has the focus nowhere.
    page.evaluate("document.activeElement.blur()")
    assert page.evaluate("document.activeElement === document.body")
    press_all()
    # The table beside it has its keys.
    page.get_by_role("link", name="vision-0", exact=True).focus()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="vision-1", exact=True)).to_be_focused()


def test_keys_can_be_switched_off(sign_in: SignIn) -> None:
    page = sign_in("bob", at="/account")
    page.get_by_label("Single keys on pages with a table").uncheck()
    page.get_by_role("button", name="Save keyboard").click()
    expect(page.get_by_text("The keys of tables are switched off.")).to_be_visible()
    page.goto("/workloads?sort=name")
    for key in ("?", "j", "/", "n"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement === document.body")
    expect(page.locator("#keys")).to_have_count(0)
    page.goto("/account")
    page.get_by_label("Single keys on pages with a table").check()
    page.get_by_role("button", name="Save keyboard").click()
    page.goto("/projects")
    page.keyboard.press("j")
    expect(page.locator("#listing tbody tr").first.locator("a").first).to_be_focused()
