"""Whoever walks a page by keyboard sees where they are: no bar lies over what has the focus."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SignIn, Site, a_site

MOST_STOPS = 150
COVERED = """() => {
  const at = document.activeElement;
  if (at === document.body || at.closest(".mu-skip")) return "";
  const { left, top, width, height } = at.getBoundingClientRect();
  const over = document.elementFromPoint(left + width / 2, top + height / 2);
  let bar = over;
  while (bar && getComputedStyle(bar).position !== "sticky") bar = bar.parentElement;
  if (!bar || bar.contains(at) || at.contains(over)) return "";
  return `${at.name || at.textContent.trim()} under ${bar.className}`;
}"""
"""What has the focus and is under which bar that sticks; "" where it is in sight."""
LONG_NAMES = """
from projects.models import Project, User
from tests.workloads.table_rows import a_pod, a_workload
team = Project.objects.get(name="team-a")
workload = a_workload(team, "w" * 60, status="Running", image="team/train:1")
for index in range(8):
    a_pod(workload, index=index)
for each in "abc":
    User.objects.create_user(each * 60)
print(workload.pk)
"""


def find_covered(page: Page, key: str, inside: str = "body") -> list[str]:
    """Press a key as often as there are stops inside an element, and return what was covered."""
    covered = []
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        at = "document.activeElement"
        if page.evaluate(f"{at} === document.body || !{at}.closest('{inside}')"):
            break
        if words := page.evaluate(COVERED):
            covered.append(words)
    return covered


def focus_last(page: Page, inside: str) -> None:
    """Give the focus to the last button or link inside an element."""
    page.locator(f"{inside} :is(a, button):visible").last.focus()


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("focus")) as running:
        yield running


@pytest.fixture(scope="module")
def sessions() -> dict[str, object]:
    return {}


@pytest.fixture(scope="module")
def long_names(site: Site) -> str:
    """Make a workload of a long name with pods, and people of long names; its id."""
    return site.server.python(LONG_NAMES).strip()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_the_bar_at_the_top_covers_no_focus(sign_in: SignIn, width: int, key: str) -> None:
    page = sign_in("alice", "/environments/new")
    page.set_viewport_size({"width": width, "height": 500})
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
    if key == "Shift+Tab":
        page.get_by_role("button", name="CREATE ENVIRONMENT").last.focus()
    assert find_covered(page, key) == []


@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_head_and_foot_of_a_dialog_cover_no_focus(sign_in: SignIn, key: str) -> None:
    page = sign_in("alice", "/projects")
    page.set_viewport_size({"width": 360, "height": 500})
    page.get_by_role("link", name="New project").first.click()
    expect(page.locator("#dialog")).to_be_visible()
    assert find_covered(page, key) == []


@pytest.mark.parametrize("height", [300, 500])
def test_a_title_of_several_lines_covers_no_focus(
    sign_in: SignIn, long_names: str, height: int
) -> None:
    page = sign_in("bob", f"/workloads/{long_names}")
    page.set_viewport_size({"width": 360, "height": height})
    for key in ("Tab", "Shift+Tab"):
        page.locator("#pods-of").click()
        expect(page.locator("#dialog-title")).to_be_focused()
        assert find_covered(page, key) == []
        page.locator("#dialog [data-close]").first.click()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_title_of_the_drawer_covers_no_focus(
    sign_in: SignIn, long_names: str, width: int
) -> None:
    page = sign_in("bob", "/workloads?q=wwww")
    page.set_viewport_size({"width": width, "height": 500})
    page.locator(f"#name-{long_names}").click()
    expect(page.locator("#drawer h1")).to_be_focused()
    assert find_covered(page, "Tab", "#drawer") == []
    focus_last(page, "#drawer")
    assert find_covered(page, "Shift+Tab", "#drawer") == []


@pytest.mark.parametrize("width", [360, 700])
@pytest.mark.parametrize("at", ["/users", "/workloads"])
def test_a_column_that_stays_in_sight_covers_no_focus(
    sign_in: SignIn, long_names: str, at: str, width: int
) -> None:
    page = sign_in("alice", at)
    page.set_viewport_size({"width": width, "height": 800})
    page.locator(".mu-table-box").focus()
    assert find_covered(page, "Tab", ".mu-table-box") == []
    focus_last(page, ".mu-table-box")
    assert find_covered(page, "Shift+Tab", ".mu-table-box") == []
