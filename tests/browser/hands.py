"""Two ways to use a page: a mouse, and a keyboard alone. Both do the same things, so that one walk
can be walked with either.
"""

import re
from collections.abc import Callable
from typing import Protocol

from playwright.sync_api import Locator, Page, expect

MOST_TABS = 250
"""More stops than any of our pages has; whoever needs more goes round in circles."""

GROUP = "element => element.type === 'radio' && element.name ? `input[name='${element.name}']` : ''"


STARTS = (
    "(field, words) => [...field.options].find((option) => option.label.startsWith(words)).value"
)


class Hands(Protocol):
    def press(self, button: Locator) -> None:
        """Use a button, a link or the head of something that opens."""

    def pick(self, button: Locator, item: Locator) -> None:
        """Open a menu and use one of its items."""

    def choose(self, box: Locator) -> None:
        """Tick a box, or choose one of several."""

    def write(self, field: Locator, text: str) -> None:
        """Put this text in place of what a field has."""

    def select(self, field: Locator, option: str) -> None:
        """Choose the option of a list that begins with these words."""

    def close(self) -> None:
        """Close the dialog that is open."""


class Mouse:
    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, button: Locator) -> None:
        button.click()

    def pick(self, button: Locator, item: Locator) -> None:
        button.click()
        item.click()

    def choose(self, box: Locator) -> None:
        box.check()

    def write(self, field: Locator, text: str) -> None:
        field.fill(text)

    def select(self, field: Locator, option: str) -> None:
        field.select_option(value=field.evaluate(STARTS, option))

    def close(self) -> None:
        self.page.get_by_role("dialog").get_by_role("button", name="Close").first.click()


class Keyboard:
    """Tab, arrows, Enter, Space and Escape; it knows no element that they do not lead to."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, button: Locator) -> None:
        self._reach(button)
        self.page.keyboard.press("Enter")

    def pick(self, button: Locator, item: Locator) -> None:
        self.press(button)
        self._walk("ArrowDown", item, 20)
        self.page.keyboard.press("Enter")

    def choose(self, box: Locator) -> None:
        group = box.evaluate(GROUP)
        if group:
            self._tab(lambda: self.page.locator(f"{group}:focus").count() > 0, box)
            self._walk("ArrowDown", box, 40)
        else:
            self._reach(box)
        if not box.is_checked():
            self.page.keyboard.press("Space")
        expect(box).to_be_checked()

    def write(self, field: Locator, text: str) -> None:
        self._reach(field)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)
        expect(field).to_have_value(text)

    def select(self, field: Locator, option: str) -> None:
        self._reach(field)
        # A browser goes to the option that begins with what is typed.
        self.page.keyboard.type(option)
        expect(field).to_have_value(field.evaluate(STARTS, option))

    def close(self) -> None:
        self.page.keyboard.press("Escape")

    def _reach(self, wanted: Locator) -> None:
        expect(wanted).to_be_visible()
        self._tab(lambda: _has_focus(wanted), wanted)

    def _tab(self, there: Callable[[], bool], wanted: Locator) -> None:
        for _ in range(MOST_TABS):
            if there():
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(
            f"{MOST_TABS} times Tab does not lead to {wanted}; it stands on "
            f"{_describe_focus(self.page)}"
        )

    def _walk(self, key: str, wanted: Locator, most: int) -> None:
        for _ in range(most):
            if _has_focus(wanted):
                return
            self.page.keyboard.press(key)
        raise AssertionError(
            f"{most} times {key} does not lead to {wanted}; it stands on "
            f"{_describe_focus(self.page)}"
        )


def _has_focus(wanted: Locator) -> bool:
    return wanted.count() == 1 and bool(
        wanted.evaluate("element => element === document.activeElement")
    )


def _describe_focus(page: Page) -> str:
    html: str = page.evaluate("document.activeElement.outerHTML")
    return re.sub(r"\s+", " ", html)[:200]
