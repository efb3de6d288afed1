"""Whoever walks a page by keyboard sees where they are: no bar lies over what has the focus."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn

MOST_STOPS = 150
COVERED = """() => {
  const at = document.activeElement;
  if (at === document.body || at.closest(".mu-masthead, .mu-skip, .mu-dialog__head")) return "";
  const { left, top, width, height } = at.getBoundingClientRect();
  const bar = document.elementFromPoint(left + width / 2, top + height / 2)
    ?.closest(".mu-masthead, .mu-dialog__head, .mu-dialog__foot");
  if (!bar || bar.contains(at)) return "";
  return `${at.name || at.textContent.trim()} under ${bar.className}`;
}"""
"""What has the focus and is under which bar; "" where it is in sight."""


def find_covered(page: Page, key: str) -> list[str]:
    """Press a key as often as there are stops, and return what was covered on the way."""
    covered = []
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        if page.evaluate("document.activeElement === document.body"):
            break
        if words := page.evaluate(COVERED):
            covered.append(words)
    return covered


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
