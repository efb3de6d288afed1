"""Pages that nobody sees hold no stream, and those that are seen share a few: a browser opens six
connections to a server at most, and with more streams than that no page of it would be answered.
"""

from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, a_tab
from tests.browser.test_log_tabs import ROWS
from tests.installation import eventually

STREAMS = """
window.sources = [];
window.EventSource = class extends EventSource {
  constructor(address) { super(address); window.sources.push(this); }
};
Object.defineProperty(document, "hidden", { configurable: true, get: () => window.isHidden });
"""
SHOW = """isHidden => {
  window.isHidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
}"""
COUNT = "window.sources.filter(each => each.readyState !== EventSource.CLOSED).length"


@pytest.fixture
def log_address(site: Site) -> str:
    """The address of the log of a workload that runs."""
    code = """
project = Project.objects.get(name="team-a")
workload = a_workload(project, name="hidden-page")
Workload.objects.filter(pk=workload.pk).update(status="Running")
print(workload.pk, wrote(workload, 1, 3).pk)
workload.name = f"hidden-{workload.pk.hex[:8]}"
workload.save()
"""
    workload, log = site.server.python(ROWS + code).split()
    return f"/workloads/{workload}/logs?log={log}"


def count_streams(page: Page) -> int:
    return int(page.evaluate(COUNT))


def wait_for_streams(page: Page, count: int) -> None:
    eventually(lambda: count_streams(page) == count)


def test_a_page_opened_in_the_background_begins_its_streams_when_it_is_seen(
    sign_in: SignIn, log_address: str
) -> None:
    page = sign_in("bob", at="/workloads")
    page.add_init_script(f"window.isHidden = true;{STREAMS}")
    page.goto("/workloads")
    assert count_streams(page) == 0
    page.evaluate(SHOW, False)
    wait_for_streams(page, 1)
    page.goto(log_address)
    expect(page.locator("[data-lines]")).to_contain_text("line 2")
    assert count_streams(page) == 0
    page.evaluate(SHOW, False)
    # That of the details, and that of the log.
    wait_for_streams(page, 2)
    expect(page.locator("[data-logs] [data-state]")).to_contain_text("Live")


def test_a_page_that_is_left_ends_its_streams_and_goes_on_when_one_comes_back(
    sign_in: SignIn, log_address: str
) -> None:
    page = sign_in("bob", at="/workloads")
    page.clock.install()
    page.add_init_script(f"window.isHidden = false;{STREAMS}")
    page.goto(log_address)
    wait_for_streams(page, 2)
    page.evaluate(SHOW, True)
    page.clock.fast_forward(10_000)
    assert count_streams(page) == 0
    page.evaluate(SHOW, False)
    wait_for_streams(page, 2)
    expect(page.locator("[data-lines]")).to_contain_text("line 2")
    expect(page.locator("[data-logs] [data-state]")).to_contain_text("Live")


def open_log(page: Page, address: str) -> None:
    page.add_init_script(f"window.isHidden = false;{STREAMS}")
    page.goto(address)
    expect(page.locator("[data-lines]")).to_contain_text("line 2")
    expect(page.locator("[data-logs] [data-state]")).to_contain_text("Live")


def test_several_windows_share_a_few_streams_and_all_are_answered(
    sign_in: SignIn, log_address: str
) -> None:
    first = sign_in("bob", at="/workloads")
    with ExitStack() as opened:
        pages = [first, *(opened.enter_context(a_tab(first.context)) for _ in range(4))]
        for number, page in enumerate(pages):
            open_log(page, log_address)
            assert sum(map(count_streams, pages[: number + 1])) <= 4
        state = first.locator("[data-logs] [data-state]")
        expect(state).to_contain_text("Paused while other windows are live")
        # Turned to, a window is live at once, and another one is not.
        first.evaluate("window.dispatchEvent(new Event('focus'))")
        expect(state).to_contain_text("Live")
        eventually(lambda: sum(map(count_streams, pages)) <= 4)
        # And without that as soon as there is room.
        waiting = pages[1].locator("[data-logs] [data-state]")
        expect(waiting).to_contain_text("Paused while other windows are live")
        for page in pages[2:]:
            page.goto("about:blank")
        expect(waiting).to_contain_text("Live")
