"""The walk every release must pass, label by label, in a real browser on a real installation: with
a mouse, and by keyboard alone.
"""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import axe
from tests.browser.hands import Hands, Keyboard, Mouse
from tests.cast import PASSWORD

ENDS_WITHIN = 120_000
"""Milliseconds until a small training has run, on a slow and busy machine."""
FOR_EVER = "sh -c 'while :; do echo still training; sleep 0.2; done'"
RANKED = ("master-0", "worker-0", "worker-1")

pytestmark = pytest.mark.timeout(1200)


def test_the_walk_with_a_mouse(visitor: Page) -> None:
    Walk(visitor, Mouse(visitor), axe).all("train1")


def test_the_walk_by_keyboard_alone(visitor: Page) -> None:
    visitor.mouse.click = visitor.mouse.down = _no_mouse  # type: ignore[method-assign]
    Walk(visitor, Keyboard(visitor), lambda page: None).all("train2")


def _no_mouse(*_: object, **__: object) -> None:
    raise AssertionError("a mouse was used")


class Walk:
    """The eleven steps. `look` is called at every page and dialog on the way."""

    def __init__(self, page: Page, hands: Hands, look: Callable[[Page], None]) -> None:
        self.page, self.hands, self._look = page, hands, look

    def all(self, name: str) -> None:
        self.signs_in()
        self.starts(name)
        self.makes_an_environment(f"pytorch-dt-{name}")
        self.submits()
        self.sees_it_run_to_its_end(name)
        self.looks_at_its_pods(name)
        self.reads_all_about_it(name)
        copy = self.copies_it()
        self.stops_it(copy)
        self.runs_it_again(copy)
        self.deletes_it(copy)

    def signs_in(self) -> None:
        self.page.goto("/")
        self.look()
        self.hands.write(self.page.get_by_label("User name"), "admin")
        self.hands.write(self.page.get_by_label("Password"), PASSWORD)
        self.hands.press(self.button("Sign in"))
        expect(self.page.get_by_role("heading", name="Workloads", exact=True)).to_be_visible()
        expect(self.page.get_by_text("Single-trust mode")).to_be_visible()
        self.look()

    def starts(self, name: str) -> None:
        page = self.page
        self.hands.pick(
            self.button("New workload").first, page.get_by_role("menuitem", name="Training").first
        )
        expect(page.get_by_label("Cluster").locator("option:checked")).to_have_text("localkube")
        expect(page.get_by_label("Project").locator("option:checked")).to_have_text("team-a")
        expect(page.get_by_role("radio", name="Start from scratch")).to_be_checked()
        for choice in ("Distributed", "TensorFlow"):
            self.hands.choose(page.get_by_role("radio", name=choice, exact=True))
        expect(page.get_by_role("radio", name="Workers & chief", exact=True)).to_be_visible()
        for choice in ("PyTorch", "Workers & master"):
            self.hands.choose(page.get_by_role("radio", name=choice, exact=True))
        self.look()
        self.hands.write(self.field("Name"), name)
        self.hands.press(self.button("CONTINUE"))

    def makes_an_environment(self, name: str) -> None:
        page = self.page
        self.hands.write(self.field("Number of workers"), "2")
        self.look()
        self.hands.press(self.button("NEW ENVIRONMENT"))
        dialog = page.get_by_role("dialog")
        self.hands.write(dialog.get_by_label("Name", exact=True), name)
        self.hands.write(dialog.get_by_label("Image", exact=True), "muster/allreduce")
        self.look()
        self.hands.press(dialog.get_by_role("button", name="CREATE ENVIRONMENT"))
        expect(page.get_by_role("radio", name=name)).to_be_checked()
        expect(self.field("Number of workers")).to_have_value("2")
        self.hands.choose(page.get_by_role("radio", name="small-fraction"))
        expect(page.get_by_text("Saved", exact=True)).to_be_visible()
        page.reload()
        for kept in (name, "small-fraction"):
            expect(page.get_by_role("radio", name=kept)).to_be_checked()
        expect(self.field("Number of workers")).to_have_value("2")
        self.hands.press(self.button("CONTINUE"))
        expect(page.get_by_text("The master has the workers' setup")).to_be_visible()
        self.look()
        self.hands.press(self.button("CONTINUE"))

    def submits(self) -> None:
        page = self.page
        expect(page.get_by_role("heading", name="Does it fit now?")).to_be_visible()
        self.hands.press(page.get_by_text("Kubernetes objects (YAML)"))
        expect(page.get_by_text("kind: PyTorchJob")).to_be_visible()
        self.hands.press(page.get_by_text("REST call", exact=True))
        expect(page.get_by_text("/api/v1/workloads/distributed")).to_be_visible()
        self.look()
        self.hands.press(page.get_by_text("Command line", exact=True))
        expect(page.get_by_text("muster submit pytorch")).to_be_visible()
        self.look()
        self.hands.press(self.button("CREATE TRAINING"))

    def sees_it_run_to_its_end(self, name: str) -> None:
        row = self.row(name)
        for words in ("Distributed", "PyTorch", "team-a", "Yes", "admin"):
            expect(row).to_contain_text(words)
        expect(row.locator("[data-column=pods]")).to_have_text(re.compile(r"[0-3]/3|3 succeeded"))
        self.page.evaluate("window.marked = true")
        expect(row.locator("[data-column=status]")).to_contain_text(
            "Completed", timeout=ENDS_WITHIN
        )
        expect(row.locator("[data-column=pods]")).to_have_text("3 succeeded")
        expect(row.locator("[data-column=allocation]")).to_have_text("0")
        self.not_loaded_again()
        self.look()

    def looks_at_its_pods(self, name: str) -> None:
        self.hands.press(self.row(name).locator("[data-column=pods] a"))
        dialog = self.page.get_by_role("dialog", name=f"Pods of {name}")
        for rank, pod in enumerate(RANKED):
            row = dialog.get_by_role("row", name=re.compile(f"{name}-{pod}"))
            expect(row.get_by_role("cell").nth(1)).to_have_text(str(rank))
            expect(row).to_contain_text("Completed")
            expect(row.get_by_role("link", name="Log")).to_be_visible()
        self.look()
        self.hands.close()
        expect(dialog).to_be_hidden()

    def reads_all_about_it(self, name: str) -> None:
        page = self.page
        self.hands.press(self.row(name).get_by_role("link", name=name, exact=True))
        drawer = page.locator("#drawer")
        expect(drawer.get_by_role("heading", name=name)).to_be_visible()
        self.look()
        self.hands.press(drawer.get_by_role("link", name="Open as a page"))
        expect(page).to_have_url(re.compile("/workloads/[0-9a-f-]{36}$"))
        for words in ("SuccessfulCreatePod", "→ Completed"):
            expect(page.locator("#history").get_by_text(words).first).to_be_visible()
        self.look()
        self.hands.press(page.get_by_role("link", name="Logs", exact=True))
        lines = page.locator("[data-lines]")
        expect(lines.locator(".lg-who").filter(has_text="2").first).to_be_visible()
        expect(lines.locator(".lg-who").filter(has_text="0").first).to_be_visible()
        self.look()
        for pod in RANKED:
            self.hands.press(
                page.get_by_role("navigation", name="Pods").get_by_role(
                    "link", name=f"{name}-{pod}"
                )
            )
            expect(
                page.get_by_role("log", name=f"Log of {name}-{pod}").locator(".lg-line").first
            ).to_be_visible()
        self.hands.press(page.get_by_role("link", name="Details", exact=True))
        expect(page.get_by_role("region", name="Kubernetes objects in YAML")).to_contain_text(
            "kind: PyTorchJob"
        )
        expect(page.get_by_role("region", name="REST call")).to_contain_text(
            "/api/v1/workloads/distributed"
        )
        self.look()

    def copies_it(self) -> str:
        """A copy that trains until it is stopped; its name."""
        page = self.page
        self.hands.press(page.get_by_role("link", name="Make a copy"))
        expect(page.get_by_role("radio", name="Distributed", exact=True)).to_be_checked()
        name = self.field("Name").input_value()
        self.hands.press(self.button("CONTINUE"))
        expect(self.field("Number of workers")).to_have_value("2")
        expect(page.get_by_role("radio", name="small-fraction")).to_be_checked()
        if not self.field("Command").is_visible():
            self.hands.press(page.get_by_text("Change for this workload"))
        self.hands.write(self.field("Command"), FOR_EVER)
        self.hands.press(self.button("CONTINUE"))
        self.hands.press(self.button("CONTINUE"))
        self.hands.press(self.button("CREATE TRAINING"))
        row = self.row(name)
        expect(row).to_be_visible()
        page.evaluate("window.marked = true")
        expect(row.locator("[data-column=status]")).to_contain_text("Running", timeout=ENDS_WITHIN)
        expect(row.locator("[data-column=pods]")).to_have_text("3/3")
        expect(row.locator("[data-column=allocation]")).to_have_text("0.3")
        self.not_loaded_again()
        self.hands.press(row.get_by_role("link", name=name, exact=True))
        self.hands.press(page.locator("#drawer").get_by_role("link", name="Open as a page"))
        return name

    def stops_it(self, name: str) -> None:
        page = self.page
        expect(page).to_have_url(re.compile("/workloads/[0-9a-f-]{36}$"))
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        page.evaluate("window.marked = true")
        self.hands.press(self.button("Stop"))
        expect(self.status).to_contain_text("Stopped", timeout=ENDS_WITHIN)
        expect(self.fact("GPU allocation")).to_have_text("0")
        self.look()
        self.not_loaded_again()

    def runs_it_again(self, name: str) -> None:
        self.hands.press(self.button("Run"))
        expect(self.status).to_contain_text("Running", timeout=ENDS_WITHIN)
        expect(self.fact("GPU allocation")).to_have_text("0.3")
        expect(self.page.get_by_role("row", name=re.compile("^2 now"))).to_contain_text("Running")
        expect(self.page.get_by_role("row", name=re.compile("^1 "))).to_contain_text("Stopped")
        self.look()
        self.not_loaded_again()

    def deletes_it(self, name: str) -> None:
        page = self.page
        self.hands.press(self.button("Delete"))
        question = page.get_by_role("alertdialog", name=f"Delete {name}?")
        expect(question.get_by_role("button", name="Cancel")).to_be_focused()
        self.look()
        self.hands.press(question.get_by_role("button", name="Delete"))
        # Whoever leaves sooner takes the question back: the browser gives up what it asked.
        expect(self.status).to_contain_text("Delet")
        self.hands.press(
            page.get_by_role("navigation", name="Main").get_by_role("link", name="Workloads")
        )
        expect(page.get_by_role("heading", name="Workloads", exact=True)).to_be_visible()
        expect(self.row(name)).to_have_count(0, timeout=ENDS_WITHIN)
        self.hands.press(
            page.get_by_role("navigation", name="Views").get_by_role("link", name="Deleted")
        )
        expect(self.row(name).locator("[data-column=status]")).to_contain_text("Deleted")
        self.look()
        self.hands.press(
            page.get_by_role("navigation", name="Main").get_by_role("link", name="Workloads")
        )
        self.hands.pick(
            self.button("New workload").first, page.get_by_role("menuitem", name="Training").first
        )
        self.hands.write(self.field("Name"), name)
        self.hands.press(self.button("CONTINUE"))
        expect(page.get_by_role("heading", name="What runs")).to_be_visible()

    def look(self) -> None:
        self._look(self.page)

    def not_loaded_again(self) -> None:
        assert self.page.evaluate("window.marked"), "the page was loaded again"

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(re.compile(f"^{label}( optional)?$"))

    def row(self, name: str) -> Locator:
        link = self.page.get_by_role("link", name=name, exact=True)
        return self.page.get_by_role("row").filter(has=link)

    @property
    def status(self) -> Locator:
        return self.page.locator(".wl-title .mu-status")

    def fact(self, name: str) -> Locator:
        return (
            self.page.locator(".wl-facts > div")
            .filter(has=self.page.get_by_text(name, exact=True))
            .locator("dd")
        )
