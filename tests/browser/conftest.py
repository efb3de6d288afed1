"""A real browser on a real server: Chromium, the console in a process of its own, and the cast in
its database.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.cast import PASSWORD
from tests.chromium import FLAGS, PACKAGE, find_chromium
from tests.console_server import WebServer
from tests.installation import Installation

AXE = next((Path(__file__).parent / "vendor").glob("axe-core-*/axe.min.js"))
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""What differs from theme to theme, which are colours and nothing else."""
WIDTHS = (360, 1280, 1920)
LIMIT = 60_000
"""Milliseconds that anything in the browser may take; far more than it does."""

ANSWERED = (
    "Failed to load resource: the server responded with a status of 4",
    "Response Status Error Code 4",
)
HTMX = "/static/django_htmx/"

TIGHT = """[...document.querySelectorAll('main .pf-v6-c-button')]
  .filter((each) => each.checkVisibility() && each.clientWidth > 1
    && each.scrollWidth > each.clientWidth)
  .map((each) => each.textContent.trim())"""
"""The buttons of a page whose words stand out of them; those for screen readers alone are one pixel
wide.
"""

CAST = """
from tests.cast import make_cast
from clusters.models import Node
cast = make_cast()
Node.objects.create(cluster=cast.cluster, name="node-0", is_ready=True, gpu_type="NVIDIA H200",
                    gpus=4, cpu=16, memory=64 << 30)
print(cast.team_a.pk, cast.team_b.pk, cast.cluster.pk)
"""

SignIn = Callable[..., Page]
expect.set_options(timeout=LIMIT)


def chromium() -> str:
    """Where the system's Chromium is. Skips the test where there is none, and fails it on the CI
    machine, which has to have one.
    """
    if executable := find_chromium():
        return executable
    reason = (
        f"no Chromium on this machine; install it (Debian: apt-get install {PACKAGE}) to run the "
        "browser tests"
    )
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with this package: while it runs, asyncio believes that this thread has a running
    loop.
    """
    executable = chromium()
    allowed = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield running
        running.close()
    if allowed is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = allowed


class Site:
    """The console with the cast in it, as production serves it: static files collected, errors as
    pages.
    """

    def __init__(self, server: WebServer) -> None:
        self.server = server
        self.url = server.url
        self.team_a, self.team_b, self.cluster = server.python(CAST).split()


@contextlib.contextmanager
def a_site(data: Path) -> Iterator[Site]:
    server = WebServer(data, debug=0)
    server.python("from console.static_files import collect_static_files\ncollect_static_files()")
    with server:
        yield Site(server)


@pytest.fixture(scope="package")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site")) as running:
        yield running


@contextlib.contextmanager
def a_context(browser: Browser, url: str) -> Iterator[BrowserContext]:
    """A fresh browser, as far as a site can tell: no cookies, nothing kept."""
    context = browser.new_context(
        base_url=url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(LIMIT)
    yield context
    context.close()


@contextlib.contextmanager
def a_tab(context: BrowserContext, forgiven: tuple[str, ...] = ANSWERED) -> Iterator[Page]:
    """A page. What its console calls an error, a refusal by the CSP among them, fails the test;
    `forgiven` does not.
    """
    opened = context.new_page()
    wrong: list[str] = []
    opened.on(
        "console",
        lambda message: (
            wrong.append(f"{message.text} ({message.location})")
            if _is_wrong(message, forgiven)
            else None
        ),
    )
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    opened.close()
    assert wrong == [], "the browser's console has errors"


@contextlib.contextmanager
def a_page(browser: Browser, url: str, forgiven: tuple[str, ...] = ANSWERED) -> Iterator[Page]:
    """The page of a fresh browser, watched as `a_tab` watches it."""
    with a_context(browser, url) as context, a_tab(context, forgiven) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    with a_page(browser, site.url) as opened:
        yield opened


@pytest.fixture(scope="package")
def installation(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """All of Muster, as `make up` starts it, with a cluster of four GPUs that runs pods."""
    with Installation(
        tmp_path_factory.mktemp("installation") / "var", admin_password=PASSWORD
    ).migrated() as started:
        yield started


@pytest.fixture
def visitor(browser: Browser, installation: Installation) -> Iterator[Page]:
    """A page of the installation for somebody who has not signed in."""
    with a_page(browser, installation.url) as opened:
        yield opened


@pytest.fixture
def admin(visitor: Page, sessions: dict[str, Any]) -> Page:
    """A page of the installation, signed in as its administrator, at the table of workloads."""
    return as_admin(visitor, sessions)


def as_admin(page: Page, sessions: dict[str, Any]) -> Page:
    if "admin" in sessions:
        page.context.add_cookies(sessions["admin"])
        page.goto("/workloads")
    else:
        page.goto("/")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/workloads")
        sessions["admin"] = page.context.cookies()
    return page


@pytest.fixture(scope="package")
def sessions() -> dict[str, Any]:
    """Cookies of those who have signed in."""
    return {}


@pytest.fixture
def sign_in(page: Page, sessions: dict[str, Any]) -> SignIn:
    """`sign_in("alice")` makes the page hers; `sign_in("bob", at="/projects")` opens that
    address.
    """

    def signed_in(name: str, at: str = "/projects") -> Page:
        if name in sessions:
            page.context.add_cookies(sessions[name])
            page.goto(at)
        else:
            page.goto(f"/sign-in?next={at}")
            page.get_by_label("User name").fill(name)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"**{at}")
            sessions[name] = page.context.cookies()
        return page

    return signed_in


def _is_wrong(message: ConsoleMessage, forgiven: tuple[str, ...]) -> bool:
    """A page that says why it is not there, or a form that comes back, is no error; a missing
    script is.
    """
    answered = message.text.startswith(forgiven)
    return message.type == "error" and not (
        answered and "/static/" not in message.location["url"].replace(HTMX, "")
    )


def set_theme(page: Page, dark: bool) -> None:
    """Light or dark from now on."""
    page.evaluate(
        "dark => document.documentElement.classList.toggle('pf-v6-theme-dark', dark)", dark
    )


def _wait_for_styles(page: Page) -> None:
    """Waits for the style sheets: what a click led to can be read, and is found, before they are
    there.
    """
    page.wait_for_load_state("load")


def axe(page: Page, themes: tuple[bool, ...] = (False, True)) -> None:
    """Assert that nothing on the page offends WCAG 2.2 AA, as far as axe can see, in light and in
    dark; of `themes` dark is true. All rules are for the first, those of colours for the others.
    """
    _wait_for_styles(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    # What is half below the bar at the top, by chance of scrolling, is no small target.
    page.evaluate("window.scrollTo(0, 0)")
    for number, dark in enumerate(themes):
        set_theme(page, dark)
        # Whatever passes needs no account of itself, which takes a third of the time.
        options = {"runOnly": COLOURS if number else RULES, "resultTypes": ["violations"]}
        found = page.evaluate(
            "asked => axe.run(document, asked).then(result => result.violations)", options
        )
        violations = [
            (each["id"], each["impact"], [node["html"][:160] for node in each["nodes"]])
            for each in found
        ]
        assert violations == [], (
            f"{page.url} ({'dark' if dark else 'light'}):\n{json.dumps(violations, indent=1)}"
        )


def fits(page: Page) -> None:
    """Asserts that the page as a whole does not scroll sideways at any of our widths; leaves the
    last one.
    """
    _wait_for_styles(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert over <= 0, f"{page.url} is {over} px too wide at {width} px"
        assert page.evaluate(TIGHT) == [], (
            f"{page.url} has buttons that are too small for their words at {width} px"
        )
