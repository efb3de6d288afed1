"""What pods, events and objects say is text: full of markup, scripts, colours and control bytes, it
is shown and nothing of it runs.
"""

import re
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import fits
from tests.cast import PASSWORD
from tests.conformance.api import Api
from tests.installation import Installation, eventually
from tests.rest import Program

SCRIPT = "<script>window.owned = 1</script>"
IMAGE = '<img src=x onerror="window.owned = 1">'
TEMPLATE = "{{ 7|add:7 }}{% now 'Y' %}</div></template></table>"
LONG = 60_000
WRITTEN = b"\n".join(
    (
        SCRIPT.encode(),
        IMAGE.encode() + b"</span></div>",
        b"\x1b[31mred\x1b[0m and \x1b[1;4munderlined\x1b[0m",
        b"\x1b]0;a title\x07\x1b]8;;javascript:window.owned=1\x07a link\x1b]8;;\x07",
        b"\x1b[2J\x1b[H\x1b[5B\x1bcafter the escapes",
        b"bytes \x00\x01\x02\x08\x0b\x7f\xff\xfe\xc3\x28 end",
        "from \u202eright to left\u202c and \u2066isolated \u200b\ufeff end".encode(),
        b"over\rwritten",
        b"<b>" + b"A" * LONG,
        b"Traceback (most recent call last):",
        f"ValueError: {IMAGE}{SCRIPT}".encode(),
        b"",
    )
)
MARKED = "<u onmouseover='window.owned=1'>hostile</u>" + IMAGE
PODS = "/api/v1/namespaces/muster-team-a/pods"
EVENTS = "/api/v1/namespaces/muster-team-a/events"

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Hostile:
    """A workload that wrote all that and failed, one that could not be started, and where events
    about them are put.
    """

    fails: str
    is_refused: str
    program: Program


@pytest.fixture(scope="module")
def hostile(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    program = Program(installation.url, PASSWORD)
    says = tmp_path_factory.mktemp("hostile") / "says"
    says.write_bytes(WRITTEN)
    # Either pod may fail first; the other one must not be cleaned away with that.
    kept: dict[str, Any] = {"restartPolicy": "Never", "backoffLimit": 0, "cleanPodPolicy": "None"}
    given: dict[str, Any] = {
        "annotations": [{"name": "note", "value": SCRIPT}],
        "environmentVariables": [{"name": "MOTTO", "value": IMAGE}],
        **kept,
    }
    fails = program.submit("hostile", command=f"sh -c 'cat {says}; exit 3'", **given)
    refused = program.submit("unstartable", command=f"'{IMAGE}'", args=f"'{SCRIPT}'", **kept)
    with closing(Api.from_kubeconfig(installation.data / "localkube" / "kubeconfig")) as api:
        for number, about in enumerate(("hostile-master-0", "hostile-worker-0")):
            api.post(EVENTS, event(number, about)).ok(201)
        for each in (fails, refused):
            eventually(partial(has_failed, program, each), 120)
        api.patch(
            f"{PODS}/unstartable-master-0/status",
            {"status": {"reason": MARKED[:60], "message": f"{SCRIPT} {TEMPLATE}"}},
        ).ok()
    return Hostile(fails, refused, program)


def has_failed(program: Program, workload: str) -> bool:
    return program.phase(workload) == "Failed"


def event(number: int, pod: str) -> dict[str, object]:
    return {
        "metadata": {"name": f"hostile-{number}", "annotations": {"x": SCRIPT}},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "muster-team-a"},
        "type": "Warning",
        "reason": MARKED[:120],
        "message": f"{SCRIPT} {TEMPLATE} \x1b[31m\u202e {MARKED}",
        "source": {"component": IMAGE},
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 3,
    }


def nothing_ran(page: Page) -> None:
    """No script of theirs, no element of theirs; what the console said of it is judged when the
    page closes.
    """
    assert page.evaluate("window.owned === undefined")
    assert page.locator("img, u, b, [onerror], [onmouseover], [href^='javascript']").count() == 0
    assert page.locator("main script, dialog script").count() == 0


def test_the_table_and_the_pods_show_it_as_text(admin: Page, hostile: Hostile) -> None:
    row = admin.get_by_role("row").filter(
        has=admin.get_by_role("link", name="unstartable", exact=True)
    )
    expect(row.locator("[data-column=status]")).to_contain_text("Failed")
    row.locator("[data-column=pods] a").click()
    pod = (
        admin.get_by_role("dialog", name="Pods of unstartable")
        .get_by_role("row")
        .filter(has_text="unstartable-master-0")
    )
    for words in (MARKED[:60], SCRIPT, TEMPLATE):
        expect(pod).to_contain_text(words)
    nothing_ran(admin)


def test_the_diagnosis_quotes_the_line_that_started_it(admin: Page, hostile: Hostile) -> None:
    admin.goto(f"/workloads/{hostile.fails}")
    diagnosis = admin.locator(".wl-diagnosis")
    expect(diagnosis).to_contain_text("exit code 3")
    expect(diagnosis.locator("code")).to_have_text(f"ValueError: {IMAGE}{SCRIPT}")
    nothing_ran(admin)
    fits(admin)


def test_a_start_that_was_refused_is_told_in_its_words(admin: Page, hostile: Hostile) -> None:
    admin.goto(f"/workloads/{hostile.is_refused}")
    expect(admin.locator(".wl-diagnosis")).to_contain_text(IMAGE)
    nothing_ran(admin)
    fits(admin)


def test_events_are_text_on_the_history(admin: Page, hostile: Hostile) -> None:
    admin.goto(f"/workloads/{hostile.fails}?warnings=1")
    events = admin.locator("#history .wl-event").filter(has_text=TEMPLATE)
    expect(events).to_have_count(2)
    for words in (SCRIPT, MARKED, "Pod hostile-master-0", IMAGE, "3 times"):
        expect(events.filter(has_text="hostile-master-0")).to_contain_text(words)
    assert not re.search("[\x1b\u202e]", events.first.inner_text())
    nothing_ran(admin)
    fits(admin)


def test_annotations_and_variables_are_text_in_the_definition(
    admin: Page, hostile: Hostile
) -> None:
    admin.goto(f"/workloads/{hostile.fails}/details")
    for words in (SCRIPT, IMAGE):
        expect(admin.locator(".wl-sections")).to_contain_text(words)
        expect(admin.get_by_role("region", name="Kubernetes objects in YAML")).to_contain_text(
            words
        )
    nothing_ran(admin)
    fits(admin)


@pytest.mark.parametrize("of", ["a pod", "all pods"])
def test_logs_are_text_with_colours_and_nothing_else(
    admin: Page, hostile: Hostile, of: str
) -> None:
    admin.goto(f"/workloads/{hostile.fails}/logs")
    if of == "a pod":
        admin.get_by_role("navigation", name="Pods").get_by_role(
            "link", name="hostile-master-0"
        ).click()
    log = admin.get_by_role(
        "log", name="Log of hostile-master-0" if of == "a pod" else "Logs of all pods"
    )
    lines = log.locator(".lg-text")
    for words in (
        SCRIPT,
        f"{IMAGE}</span></div>",
        "after the escapes",
        "written",
        f"ValueError: {IMAGE}{SCRIPT}",
    ):
        expect(lines.filter(has_text=words).first).to_be_visible()
    expect(lines.locator(".ansi-fg-1").first).to_have_text("red")
    expect(lines.locator(".ansi-bold.ansi-underline").first).to_have_text("underlined")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", log.inner_text())
    # A line that turns the reading around turns nothing but itself.
    assert lines.first.evaluate("element => getComputedStyle(element).unicodeBidi") == "isolate"
    nothing_ran(admin)
    fits(admin)


def test_a_search_for_markup_marks_it_as_text(admin: Page, hostile: Hostile) -> None:
    admin.goto(f"/workloads/{hostile.fails}/logs")
    admin.get_by_role("searchbox", name="Search this log").fill("<script>")
    admin.keyboard.press("Enter")
    expect(admin.locator("mark.lg-hit").first).to_have_text("<script>")
    nothing_ran(admin)


def test_what_is_downloaded_is_no_page(admin: Page, hostile: Hostile) -> None:
    logs = admin.request.get(f"/workloads/{hostile.fails}/logs/window").text().splitlines()
    first = next(iter(re.findall(r'"logs": ?\{"(\d+)"', logs[0])))
    for path, kind in (
        (f"/workloads/{hostile.fails}/logs/download?log={first}", "text/plain; charset=utf-8"),
        (f"/workloads/{hostile.fails}/logs/download", "application/zip"),
        ("/workloads.csv", "text/csv; charset=utf-8"),
    ):
        answer = admin.request.get(path)
        assert answer.status == 200
        assert answer.headers["content-type"] == kind
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    whole = admin.request.get(
        f"/workloads/{hostile.fails}/logs/download?log={first}&timestamps=0"
    ).body()
    assert SCRIPT.encode() in whole
    assert b"A" * LONG in whole


def test_answers_that_scripts_read_are_no_pages(admin: Page, hostile: Hostile) -> None:
    for path in ("logs/window", "logs/search?q=script"):
        answer = admin.request.get(f"/workloads/{hostile.fails}/{path}")
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["x-content-type-options"] == "nosniff"
