"""Makes docs/screenshots/*.png: every page of a console in the middle of its day, in light and
dark.

python scripts/screenshots.py              what is kept in docs/screenshots
python scripts/screenshots.py --all DIR    every page at every width and whole, to look at
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BASE), str(BASE / "scripts")]

import django  # noqa: E402

import tests.environ  # noqa: E402, F401 - what Django's settings read

os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
django.setup()

from palette import reduce_colours  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from tests.browser.conftest import chromium  # noqa: E402
from tests.cast import PASSWORD  # noqa: E402
from tests.chromium import FLAGS  # noqa: E402
from tests.console_server import WebServer  # noqa: E402

PICTURES = BASE / "docs" / "screenshots"
SIZES = {360: 740, 1280: 800, 1920: 1080}
USUAL = 1280
SEED = """
import json
from datetime import timedelta
from django.utils import timezone
from projects.models import Project, User
from tests.cast import make_cast
from tests.lively import lively
from tests.lively_past import record_past
from tests.workloads.timeline_rows import EventfulWorkload
from workloads.ledger import get_month
make_cast()
ids = lively()
a, b = Project.objects.filter(name__in=("team-a", "team-b")).order_by("name")
eventful = EventfulWorkload(a, b, User.objects.get(username="bob"), "llama-elastic")
record_past()
# In its first days a month has few bars.
month = get_month(timezone.now().date() - timedelta(days=9))
print(json.dumps(ids | {"eventful": str(eventful.workload.pk), "month": str(month)}))
"""


def as_it_is(page: Page) -> None:
    """Nothing is opened."""


def pods(page: Page) -> None:
    page.get_by_role("link", name="pods of llama-sft-8b", exact=False).first.click()
    page.get_by_role("dialog").get_by_text("llama-sft-8b-master-0").first.wait_for()


def drawer(page: Page) -> None:
    page.get_by_role("link", name="resnet50-imagenet", exact=True).click()
    page.locator("#drawer .wl-name").wait_for()


def menu(page: Page) -> None:
    page.get_by_role("button", name="New workload").first.click()


def question(page: Page) -> None:
    page.get_by_role("button", name="Delete", exact=True).click()


def new_environment(page: Page) -> None:
    page.get_by_role("button", name="NEW ENVIRONMENT").click()
    page.get_by_role("dialog").get_by_label("Image", exact=True).wait_for()


def objects(page: Page) -> None:
    page.get_by_text("Kubernetes objects (YAML)").click()


def log_lines(page: Page) -> None:
    page.locator(".lg-line").first.wait_for()


def as_bob(page: Page) -> None:
    """Of the page that is opened, what Bob gets. Whatever comes next is seen with his eyes, too."""
    address = page.url
    page.locator("tr", has_text="bob").get_by_role("button").click()
    page.get_by_role("menuitem", name="Look as bob").click()
    page.get_by_role("button", name="Look as yourself again").wait_for()
    page.goto(address)


def timeline_picture(page: Page) -> None:
    page.locator(".tl-tools").evaluate("tools => tools.scrollIntoView()")
    page.evaluate("window.scrollBy(0, -64)")


def look_back(page: Page) -> None:
    page.get_by_role("button", name="Look back").click()
    page.get_by_role("button", name="Show").wait_for()


def chart(page: Page) -> None:
    page.locator(".ch-legend__item").first.wait_for()


@dataclass(frozen=True)
class Shot:
    name: str
    path: str
    then: Callable[[Page], None] = as_it_is
    main: bool = False
    """Whether its other widths are kept, too."""


SHOTS = (
    Shot("sign-in", "/sign-in"),
    Shot("overview", "/overview", chart, main=True),
    Shot("ledger-usage", "/usage?month={month}"),
    Shot("ledger-project", "/projects/{project}/usage?month={month}"),
    Shot("forecasts", "/forecasts"),
    Shot("quota-trial", "/quota-trials/{trial}", main=True),
    Shot("quota-trial-new", "/clusters/{cluster}/quota-trial?from={trial}"),
    Shot("quota-trials", "/quota-trials"),
    Shot("time-machine", "/time-machine", main=True),
    Shot("time-machine-workload", "/time-machine?workload={pending}"),
    Shot("overview-look-back", "/overview", look_back),
    Shot("workloads", "/workloads", main=True),
    Shot("workloads-pods", "/workloads", pods, main=True),
    Shot("workloads-drawer", "/workloads", drawer),
    Shot("workloads-new", "/workloads", menu),
    Shot("workloads-deleted", "/workloads?deleted=1"),
    Shot("workload-running", "/workloads/{running}"),
    Shot("workload-waits", "/workloads/{pending}"),
    Shot("workload-alternatives", "/workloads/{pending}/alternatives?played=1", main=True),
    Shot("workload-failed", "/workloads/{failed}"),
    Shot("workload-delete", "/workloads/{failed}", question),
    Shot("workload-logs", "/workloads/{running}/logs", log_lines, main=True),
    Shot("timeline", "/workloads/{eventful}/timeline", timeline_picture),
    Shot("workload-definition", "/workloads/{running}/details"),
    Shot("wizard-start", "/workloads/new/{draft}/start"),
    Shot("wizard-setup", "/workloads/new/{draft}/setup"),
    Shot("wizard-environment", "/workloads/new/{draft}/setup", new_environment),
    Shot("wizard-master", "/workloads/new/{draft}/master"),
    Shot("wizard-review", "/workloads/new/{draft}/review", main=True),
    Shot("wizard-objects", "/workloads/new/{draft}/review", objects),
    Shot("environments", "/environments"),
    Shot("environment-new", "/environments/new"),
    Shot("compute-resources", "/compute-resources"),
    Shot("compute-resource-new", "/compute-resources/new"),
    Shot("data-source-new", "/data-sources/new/git"),
    Shot("credentials", "/credentials"),
    Shot("templates", "/templates"),
    Shot("template", "/templates/{template}"),
    Shot("policy-new", "/policies/new"),
    Shot("policies-effective", "/policies/effective?project={project}"),
    Shot("projects", "/projects"),
    Shot("project", "/projects/{project}", chart, main=True),
    Shot("project-new", "/projects/new"),
    Shot("department", "/departments/{department}"),
    Shot("node-pool", "/node-pools/{pool}"),
    Shot("clusters", "/clusters"),
    Shot("cluster", "/clusters/{cluster}"),
    Shot("cluster-missing", "/clusters/{missing}"),
    Shot("cluster-new", "/clusters/new"),
    Shot("node", "/clusters/{cluster}/nodes/gpu-node-0"),
    Shot("users", "/users"),
    Shot("user-keys", "/users/{keyed}/keys"),
    Shot("access-rules", "/access-rules"),
    Shot("roles", "/roles"),
    Shot("service-accounts", "/service-accounts"),
    Shot("audit", "/audit"),
    Shot("settings", "/settings"),
    Shot("account", "/account"),
    Shot("second-factor", "/account/second-factor"),
    Shot("single-trust", "/help/single-trust"),
    Shot("not-there", "/nowhere"),
    Shot("looking-as", "/users", as_bob),
)


@contextmanager
def console(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A console with its day in it: its address and the ids of what is looked at."""
    server = WebServer(folder / "data", debug=0)
    server.python("from console.static_files import collect_static_files\ncollect_static_files()")
    with server:
        yield server.url, json.loads(server.python(SEED))


def signed_in(
    browser: Browser, url: str, width: int, theme: str, *, name: str = "alice", height: int = 0
) -> Page:
    """Return a page of a person who has signed in; the tests' people have one password."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": height or SIZES[width]},
        reduced_motion="reduce",
        color_scheme=theme,
        locale="en-GB",
    )  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/sign-in?next=/account")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/account")
    return page


def take_screenshot(page: Page, shot: Shot, ids: dict[str, str], is_full_page: bool) -> bytes:
    if shot.name == "sign-in":
        page.context.clear_cookies()
    page.goto(shot.path.format(**ids))
    page.evaluate("document.fonts.ready")
    shot.then(page)
    page.mouse.move(0, 0)
    return page.screenshot(full_page=is_full_page, animations="disabled", caret="hide")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--all", type=Path, metavar="DIR", help="every page at every width, whole, into DIR"
    )
    parser.add_argument("--only", default="", help="names of pictures, with commas between them")
    chosen = parser.parse_args()
    folder = chosen.all or PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in chosen.only.split(",") if name]
    shots = [shot for shot in SHOTS if not names or shot.name in names]
    with (
        tempfile.TemporaryDirectory() as data,
        console(Path(data)) as (url, ids),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for width in SIZES:
            for theme in ("light", "dark"):
                page = signed_in(browser, url, width, theme)
                # The page without a session comes last.
                for shot in sorted(shots, key=lambda shot: shot.name == "sign-in"):
                    if chosen.all or width == USUAL or shot.main:
                        png = take_screenshot(page, shot, ids, is_full_page=bool(chosen.all))
                        (folder / f"{shot.name}-{width}-{theme}.png").write_bytes(
                            png if chosen.all else reduce_colours(png)
                        )
                page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
