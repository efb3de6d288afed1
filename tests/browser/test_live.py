"""Pages that keep themselves fresh, on a real installation: without a reload, without moving what
one reads, over a killed web process.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.browser.conftest import ANSWERED, LIMIT, a_page, as_admin
from tests.cast import PASSWORD
from tests.installation import Installation, eventually
from tests.rest import Program, Refused

COUNTING = "sh -c 'n=0; while :; do n=$((n+1)); echo line $n; sleep 0.05; done'"
LOST = ("Failed to load resource: net::ERR_", "htmx:sendError", "htmx:afterRequest", *ANSWERED)
"""What Chromium says of a server that is killed."""
RUNS_WITHIN = 120_000

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def program(installation: Installation) -> Program:
    return Program(installation.url, PASSWORD)


@pytest.fixture
def page(browser: Browser, installation: Installation, sessions: dict[str, Any]) -> Iterator[Page]:
    """The table of workloads, signed in; what is lost with a killed server is no error here. It
    must never be loaded again.
    """
    with a_page(browser, installation.url, forgiven=LOST) as opened:
        as_admin(opened, sessions).evaluate("window.marked = true")
        yield opened


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def top(page: Page, name: str) -> float:
    """How far from the window's upper edge a row is."""
    # Found and measured at once: between the two a row may have changed, and the one found be gone.
    # One that is just being put into the table has no place yet.
    measure = (
        "(rows, name) => rows.filter(row => "
        "row.querySelector('[data-column=name]').innerText === name && "
        "row.getClientRects().length)"
        ".map(row => row.getBoundingClientRect().top)"
    )
    tops = eventually(lambda: page.locator("[data-rows] tr").evaluate_all(measure, name))
    return float(tops[0])


def same_page(page: Page) -> bool:
    return bool(page.evaluate("window.marked === true"))


def killed_web(installation: Installation) -> None:
    """kill -9 of the web process; back when the supervisor has started another."""
    old = installation.kill_one("web")
    eventually(lambda: installation.pids().get("web", old) != old)


def test_a_new_row_comes_and_a_deleted_one_goes_by_themselves(page: Page, program: Program) -> None:
    new = program.submit("comes-and-goes")
    expect(row(page, "comes-and-goes")).to_be_visible()
    expect(row(page, "comes-and-goes").locator("[data-column=status]")).to_contain_text(
        "Completed", timeout=RUNS_WITHIN
    )
    program.delete(new)
    expect(row(page, "comes-and-goes")).to_have_count(0, timeout=RUNS_WITHIN)
    assert same_page(page)


def test_a_filter_is_kept_while_rows_come(page: Page, program: Program) -> None:
    page.get_by_role("searchbox", name="Search by name").fill("wanted")
    expect(page).to_have_url(re.compile("q=wanted"))
    program.submit("other-one")
    program.submit("wanted-one")
    expect(row(page, "wanted-one")).to_be_visible()
    expect(row(page, "other-one")).to_have_count(0)
    expect(page.get_by_role("searchbox", name="Search by name")).to_have_value("wanted")
    assert same_page(page)
    page.reload()
    expect(row(page, "wanted-one")).to_be_visible()
    expect(row(page, "other-one")).to_have_count(0)


def test_a_new_row_has_the_columns_that_are_chosen(page: Page, program: Program) -> None:
    names = "cells => cells.map(cell => cell.dataset.column)"
    columns = page.get_by_label("Columns", exact=True)
    columns.click()
    page.get_by_role("group", name="Columns").get_by_label("Type").uncheck()
    expect(page.locator("th[data-column=type]")).to_have_count(0)
    expect(page).to_have_url(re.compile("column=status"))
    program.submit("without-type")
    expect(row(page, "without-type")).to_be_visible()
    heads = page.locator("#workloads thead th").evaluate_all(names)
    assert row(page, "without-type").locator("td, th").evaluate_all(names) == heads
    page.goto("/workloads")
    expect(page.locator("th[data-column=type]")).to_have_count(0)


def test_with_the_pointer_in_the_table_a_button_tells_of_new_rows_and_nothing_moves(
    page: Page, program: Program
) -> None:
    program.submit("read-just-now")
    expect(row(page, "read-just-now")).to_be_visible()
    row(page, "read-just-now").hover()
    place = top(page, "read-just-now")
    program.submit("comes-later")
    pill = page.get_by_role("button", name="1 new workload: show")
    expect(pill).to_be_visible()
    expect(row(page, "comes-later")).to_have_count(0)
    assert top(page, "read-just-now") == place
    pill.click()
    expect(row(page, "comes-later")).to_be_visible()
    expect(pill).to_be_hidden()


def test_a_row_that_changes_keeps_its_place_its_tick_and_the_focus(
    page: Page, program: Program
) -> None:
    program.submit("ticked", command=COUNTING)
    expect(row(page, "ticked")).to_be_visible()
    box = row(page, "ticked").get_by_role("checkbox")
    box.check()
    box.focus()
    expect(row(page, "ticked").locator("[data-column=status]")).to_contain_text(
        "Running", timeout=RUNS_WITHIN
    )
    program.suspend(str(program.listed()["ticked"]["id"]))
    expect(row(page, "ticked").locator("[data-column=status]")).to_contain_text(
        "Stopped", timeout=RUNS_WITHIN
    )
    expect(box).to_be_checked()
    expect(box).to_be_focused()


def test_the_table_catches_up_after_the_web_process_was_killed(
    page: Page, program: Program, installation: Installation
) -> None:
    killed_web(installation)
    program.submit("after-the-kill")
    expect(row(page, "after-the-kill")).to_be_visible(timeout=LIMIT)
    expect(row(page, "after-the-kill").locator("[data-column=status]")).to_contain_text(
        "Completed", timeout=RUNS_WITHIN
    )
    assert same_page(page)


@pytest.mark.parametrize("late_stream", [False, True], ids=["stream first", "pod first"])
def test_logs_opened_as_soon_as_it_is_submitted_follow_its_pods(
    page: Page, program: Program, late_stream: bool
) -> None:
    """Whatever happens between the page, its window and its stream: all that there is to see, or
    nothing of it.
    """
    name, routes = f"late-{'stream' if late_stream else 'pod'}", list[Route]()
    if late_stream:
        page.route("**/logs/stream?*", lambda route: routes.append(route))
    state, search = (
        page.locator("[data-logs] [data-state]"),
        page.get_by_role("searchbox", name="Search this log"),
    )
    pods = page.get_by_role("navigation", name="Pods")
    late = program.submit(name, command=COUNTING)
    page.goto(f"/workloads/{late}/logs")
    page.evaluate("window.marked = true")
    search.fill("line")
    if late_stream:
        eventually(
            lambda: all(
                _has_log(program, late, f"{name}-{pod}") for pod in ("master-0", "worker-0")
            )
        )
        eventually(lambda: _count_routes(page, routes) > 0)
        routes[0].continue_()
        page.unroute("**/logs/stream?*")
    expect(pods.get_by_role("link")).to_have_text(
        ["All", f"{name}-master-0", f"{name}-worker-0"], timeout=RUNS_WITHIN
    )
    both = page.get_by_role("log", name="Logs of all pods")
    for pod in ("master-0", "worker-0"):
        expect(both.locator(f".lg-who[title^='{name}-{pod},']").first).to_be_visible()
    expect(state).to_contain_text("Live")
    expect(pods.get_by_role("link", name="All")).to_have_attribute("aria-current", "true")
    expect(search).to_have_value("line")
    expect(search).to_be_focused()
    pods.get_by_role("link", name=f"{name}-master-0").click()
    log = page.get_by_role("log", name=f"Log of {name}-master-0")
    eventually(lambda: _last(log) > 40)
    assert _numbers(log)[:40] == list(range(1, 41))
    assert same_page(page)
    program.delete(late)


def _count_routes(page: Page, routes: list[Route]) -> int:
    # Routes are handled only while Playwright waits for something.
    page.wait_for_timeout(50)
    return len(routes)


def _has_log(program: Program, workload: str, pod: str) -> bool:
    try:
        return bool(program.log(workload, pod))
    except Refused:
        return False


def test_a_followed_log_loses_and_doubles_no_line_when_the_web_process_is_killed(
    page: Page, program: Program, installation: Installation
) -> None:
    counting = program.submit("counting", command=COUNTING)
    expect(row(page, "counting").locator("[data-column=status]")).to_contain_text(
        "Running", timeout=RUNS_WITHIN
    )
    page.goto(f"/workloads/{counting}/logs")
    page.get_by_role("navigation", name="Pods").get_by_role(
        "link", name="counting-master-0"
    ).click()
    log = page.get_by_role("log", name="Log of counting-master-0")
    page.evaluate("window.marked = true")
    for _ in range(3):
        last_number = _last(log)
        killed_web(installation)
        _wait_past(log, last_number + 40)
    numbers = _numbers(log)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] == 1
    assert same_page(page)
    program.delete(counting)


def _numbers(log: Locator) -> list[int]:
    texts = log.locator(".lg-line .lg-text").all_text_contents()
    return [int(text.removeprefix("line ")) for text in texts]


def _last(log: Locator) -> int:
    expect(log.locator(".lg-line").first).to_be_visible()
    text = log.locator(".lg-line .lg-text").last.text_content()
    assert text is not None
    return int(text.removeprefix("line "))


def _wait_past(log: Locator, number: int) -> None:
    eventually(lambda: _last(log) > number)


def test_the_details_change_by_themselves(page: Page, program: Program) -> None:
    page.goto(f"/workloads/{program.submit('detailed')}")
    page.evaluate("window.marked = true")
    expect(page.locator(".wl-title .mu-status")).to_have_text("Completed", timeout=RUNS_WITHIN)
    expect(page.locator("#history").get_by_text("→ Completed")).to_be_visible()
    assert same_page(page)


def test_a_question_is_answered_though_the_details_change_meanwhile(
    page: Page, program: Program
) -> None:
    workload = program.submit("asked-twice", command="sleep 600")
    page.goto(f"/workloads/{workload}")
    page.locator("#act-delete").click()
    page.locator("#act-delete").evaluate("button => { button.dataset.old = ''; }")
    page.evaluate(
        "id => htmx.trigger(document.querySelector(`[data-refresh='${id}']`), 'muster:changed')",
        workload,
    )
    expect(page.locator("#act-delete:not([data-old])")).to_be_attached()
    page.get_by_role("alertdialog", name="Delete asked-twice?").get_by_role(
        "button", name="Delete"
    ).click()
    expect(page.locator(".wl-title .mu-status")).to_contain_text("Delet")


def test_a_refresh_of_the_wizard_keeps_everything_typed(page: Page) -> None:
    page.goto("/workloads/new")
    page.get_by_role("radio", name="Distributed", exact=True).check()
    page.get_by_role("radio", name="PyTorch", exact=True).check()
    page.get_by_label("Name", exact=True).fill("half-done")
    kept_after_a_refresh(page)
    expect(page.get_by_role("radio", name="Distributed", exact=True)).to_be_checked()
    expect(page.get_by_label("Name", exact=True)).to_have_value("half-done")
    page.get_by_role("button", name="CONTINUE").click()

    page.get_by_role("radio", name="pytorch-ddp").check()
    page.get_by_role("radio", name="half-gpu").check()
    page.get_by_label("Number of workers").fill("7")
    page.get_by_text("Change for this workload").click()
    page.get_by_label("Arguments").fill("--epochs '3 4'")
    page.get_by_role("button", name="Add variable").click()
    page.get_by_label("Name", exact=False).last.fill("NCCL_DEBUG")
    kept_after_a_refresh(page)
    for chosen in ("pytorch-ddp", "half-gpu"):
        expect(page.get_by_role("radio", name=chosen)).to_be_checked()
    expect(page.get_by_label("Number of workers")).to_have_value("7")
    expect(page.get_by_label("Arguments")).to_have_value("--epochs '3 4'")
    assert "NCCL_DEBUG" in page.locator("input").evaluate_all("all => all.map(each => each.value)")


def test_saved_is_said_of_the_last_that_was_typed(page: Page) -> None:
    page.goto("/workloads/new")
    routes: list[Route] = []
    page.route("**/typed", lambda route: routes.append(route))
    page.get_by_role("radio", name="Distributed", exact=True).check()
    eventually(lambda: _count_routes(page, routes) == 1)
    page.get_by_label("Name", exact=True).fill("half-done")
    with page.expect_response("**/typed"):
        routes[0].continue_()
    eventually(lambda: _count_routes(page, routes) == 2)
    assert page.locator("#saved").text_content() == ""
    routes[1].continue_()
    expect(page.locator("#saved")).to_have_text("Saved")


def kept_after_a_refresh(page: Page) -> None:
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.reload()
