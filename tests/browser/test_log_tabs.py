"""The page of logs while pods come and end: what one has chosen, reads, types and has the focus on
stays as it is.
"""

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import SignIn, Site
from tests.examples.processes import wait_until

ROWS = """
from projects.models import Project
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Log, Pod, Workload
from tests.workloads.pods import a_workload

def wrote(workload, rank, lines):
    pod = Pod.objects.create(workload=workload, attempt=1, uid=f"uid-{rank}", name=f"tabs-{rank}",
                             rank=rank, phase="Running")
    path = log_paths.build_log_path(workload.pk, pod.uid, "main", 0)
    with LogWriter(log_paths.local_path(path)) as writer:
        seconds = [(1_800_000_000 + n) * stamps.SECOND for n in range(lines)]
        times = [stamps.format_time(at).encode() for at in seconds]
        writer.append([time + b" line %d" % n for n, time in enumerate(times)])
    return Log.objects.create(pod=pod, container="main", path=path, state="capturing")
"""
PLACES = """name => {
  const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
  const [text, range] = [walker.nextNode(), document.createRange()];
  return [...text.data].map((_, at) => {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().left;
  });
}"""
"""Where the letters of a name are, in pixels from the left."""


@pytest.fixture
def log_page(sign_in: SignIn, site: Site, request: pytest.FixtureRequest) -> tuple[Page, str]:
    """The log of the second pod of a workload that runs, with the end of it in view; and the
    workload's id.
    """
    code = f"""
project = Project.objects.get(name="team-a")
workload = a_workload(project, name="tabs-{abs(hash(request.node.name)) % 10**8}")
Workload.objects.filter(pk=workload.pk).update(status="Running")
print(workload.pk, wrote(workload, 1, 300).pk)
"""
    workload, log = site.server.python(ROWS + code).split()
    page = sign_in("bob", at=f"/workloads/{workload}/logs?log={log}")
    page.evaluate("window.marked = true")
    expect(page.locator("[data-logs] [data-state]")).to_contain_text("Live")
    return page, workload


def run_on_server(site: Site, workload: str, code: str) -> None:
    site.server.python(f"{ROWS}\nworkload = Workload.objects.get(pk='{workload}')\n{code}")


def tabs(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Pods").get_by_role("link")


def test_what_one_does_stays_while_pods_come_and_end(
    log_page: tuple[Page, str], site: Site
) -> None:
    page, workload = log_page
    mine, search = (
        tabs(page).filter(has_text="tabs-1"),
        page.get_by_role("searchbox", name="Search this log"),
    )
    mine.evaluate("tab => { tab.kept = true }")
    search.fill("line 17")
    log = page.get_by_role("log")
    log.evaluate("box => { box.scrollTop = 1500 }")
    place = log.evaluate("box => box.scrollTop")
    mine.focus()

    run_on_server(site, workload, "wrote(workload, 0, 3)")
    expect(tabs(page)).to_have_text(["All", "tabs-0", "tabs-1"])
    run_on_server(
        site, workload, "Pod.objects.filter(workload=workload, rank=1).update(phase='Succeeded')"
    )
    expect(tabs(page)).to_have_text(["All", "tabs-0", re.compile("tabs-1 +ended")])

    assert mine.evaluate("tab => tab.kept === true"), (
        "it is the same one: whoever was about to click it does"
    )
    expect(mine).to_be_focused()
    expect(mine).to_have_attribute("aria-current", "true")
    expect(search).to_have_value("line 17")
    assert log.evaluate("box => box.scrollTop") == place
    tabs(page).filter(has_text="tabs-0").press("Enter")
    expect(page.get_by_role("log", name="Log of tabs-0").locator(".lg-line")).to_have_count(3)
    assert page.evaluate("window.marked === true")


def test_whoever_does_not_follow_gets_the_tabs_and_no_line(
    log_page: tuple[Page, str], site: Site
) -> None:
    page, workload = log_page
    every = tabs(page).filter(has_text="All")
    every.click()
    # The log that was shown until now has a switch of its own.
    expect(every).to_have_attribute("aria-current", "true")
    page.get_by_role("checkbox", name="Follow").uncheck()
    state = page.locator("[data-logs] [data-state]")
    expect(state).to_have_text("Paused · 300 lines in view")
    run_on_server(site, workload, "wrote(workload, 0, 3)")
    expect(tabs(page)).to_have_text(["All", "tabs-0", "tabs-1"])
    expect(state).to_have_text("Paused · 300 lines in view")
    page.get_by_role("checkbox", name="Follow").check()
    expect(state).to_have_text("Live · 303 lines in view")


def test_the_end_is_told_to_who_looks(log_page: tuple[Page, str], site: Site) -> None:
    page, workload = log_page
    run_on_server(
        site, workload, "Log.objects.filter(pod__workload=workload).update(state='complete')"
    )
    expect(page.locator("[data-logs] [data-state]")).to_have_text("Complete · 300 lines in view")
    run_on_server(site, workload, "wrote(workload, 0, 3)")
    expect(tabs(page)).to_have_text(["All", "tabs-0", "tabs-1"])


def test_what_is_missing_is_no_line(log_page: tuple[Page, str], site: Site) -> None:
    page, workload = log_page
    gap = {"at": "", "cause": "dropped", "offset": 0}
    run_on_server(
        site, workload, f"Log.objects.filter(pod__workload=workload).update(gaps=[{gap}])"
    )
    page.reload()
    expect(page.locator(".lg-gap")).to_have_count(1)
    expect(page.get_by_role("log").locator(".lg-line")).to_have_count(300)
    expect(page.locator("[data-logs] [data-state]")).to_have_text("Live · 300 lines in view")


def test_before_there_is_a_pod_the_page_says_so_and_then_follows_it(
    sign_in: SignIn, site: Site
) -> None:
    workload = site.server.python(
        ROWS + "print(a_workload(Project.objects.get(name='team-a'), name='tabs-late').pk)"
    ).strip()
    page = sign_in("bob", at=f"/workloads/{workload}/logs")
    page.evaluate("window.marked = true")
    state, search = (
        page.locator("[data-logs] [data-state]"),
        page.get_by_role("searchbox", name="Search this log"),
    )
    expect(state).to_have_text("Live · There is no pod yet. It is being sent to its cluster.")
    expect(tabs(page)).to_have_text(["All"])
    # No empty pane: what there is to read is where to look.
    expect(page.locator("[data-lines]")).to_be_hidden()
    elsewhere = page.locator(".lg-where")
    expect(elsewhere.get_by_role("link", name="event history")).to_be_visible()
    search.fill("line")
    run_on_server(site, workload, "wrote(workload, 0, 3)")
    expect(tabs(page)).to_have_text(["All", "tabs-0"])
    expect(page.get_by_role("log").locator(".lg-line")).to_have_count(3)
    expect(state).to_have_text("Live · 3 lines in view")
    expect(elsewhere).to_be_hidden()
    expect(tabs(page).filter(has_text="All")).to_have_attribute("aria-current", "true")
    expect(search).to_have_value("line")
    expect(search).to_be_focused()
    assert page.evaluate("window.marked === true")


def test_what_changes_above_the_log_opens_no_other_stream(log_page: tuple[Page, str]) -> None:
    page, _ = log_page
    streams: list[str] = []
    page.on(
        "request",
        lambda request: (
            streams.append(request.url) if request.resource_type == "eventsource" else None
        ),
    )
    page.evaluate(
        "() => new Promise(done => { document.addEventListener('htmx:afterSettle', done, {once: "
        "true});"
        " htmx.trigger(document.querySelector('.wl-head'), 'muster:changed') }).then(() => 0)"
    )
    expect(page.locator("[data-logs] [data-state]")).to_contain_text("Live")
    assert streams == []


def test_a_server_that_fails_is_not_asked_without_a_pause(
    log_page: tuple[Page, str], site: Site
) -> None:
    page, workload = log_page
    urls: list[str] = []

    def fail(route: Route) -> None:
        urls.append(route.request.url)
        route.fulfill(status=422, content_type="text/html", body="<main><p>Not now.</p></main>")

    run_on_server(site, workload, "wrote(workload, 7, 1500)")
    page.clock.install()
    page.goto(f"{page.url.split('/logs')[0]}/logs?find=7")
    state = page.locator("[data-logs] [data-state]")
    expect(state).to_contain_text("500 lines")
    page.route("**/logs/window?*before=*", fail)
    # Else its clock goes on with that of a slow machine. A moment that is over it would refuse.
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 60)
    page.get_by_role("log").evaluate("box => { box.scrollTop = 0 }")

    def fails() -> bool:
        page.clock.run_for(20)
        return state.inner_text() == "Not now."

    wait_until(fails, 60, state.inner_text)
    page.clock.run_for(1_000)
    page.evaluate("fetch(location.href).then(answer => answer.text())")
    assert len(urls) == 1
    page.clock.run_for(5_000)
    page.evaluate("fetch(location.href).then(answer => answer.text())")
    assert len(urls) == 2


def test_who_was_signed_out_is_told_so(log_page: tuple[Page, str]) -> None:
    page, _ = log_page
    page.route(
        "**/logs/search?*", lambda route: route.fulfill(status=302, headers={"location": "/"})
    )
    page.get_by_role("searchbox", name="Search this log").fill("line 17")
    page.get_by_role("searchbox", name="Search this log").press("Enter")
    expect(page.locator("[data-found]")).to_contain_text("You were signed out")


def test_a_name_that_begins_with_digits_is_read_from_left_to_right(
    log_page: tuple[Page, str], site: Site
) -> None:
    page, workload = log_page
    renamed = "Pod.objects.filter(workload=workload, rank=0).update(rank=None, name='7-a')"
    run_on_server(site, workload, f"wrote(workload, 0, 3)\n{renamed}")
    page.goto(f"/workloads/{workload}/logs")
    name = page.locator(".lg-who").filter(has_text="7-a").first
    expect(name).to_be_visible()
    places = name.evaluate(PLACES)
    assert places == sorted(places)
