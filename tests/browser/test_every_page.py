"""Every page there is, at all our widths and in both themes. The pages come from the URL table: a new one needs its visit here."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SignIn, Site, a_site, axe, fits
from tests.console.test_every_address import EVERY

LIVELY = """
import json
from tests.lively import lively
print(json.dumps(lively()))
"""

PARTS = "a part of a page, seen there"
ANSWERS = "an answer to a script or a file, not a page"
ACTS = "only acts, and answers with a page that is visited"

UNSEEN: dict[str, str] = {
    **dict.fromkeys(("healthz", "readyz", "workloads-changes", "workloads-live", "workload-live", "workloads-csv"), ANSWERS),
    **dict.fromkeys(("log-window", "log-search", "log-stream", "log-download", "wizard-save"), ANSWERS),
    **dict.fromkeys((name for name in EVERY if name.startswith("api-")), ANSWERS),
    **dict.fromkeys(("workload-head", "workload-events"), PARTS),
    **dict.fromkeys(("sign-out", "home", "workload-new", "workload-stop", "workload-run", "workload-delete"), ACTS),
    **dict.fromkeys(("user-reset", "user-active", "person-add", "person-role", "person-remove"), ACTS),
    **dict.fromkeys(("service-account-create", "service-account-rotate", "service-account-delete"), ACTS),
    "workloads-bulk": "answers a POST only; without scripts a page of results, tested in tests/workloads",
}
"""The addresses that nobody looks at by themselves, and why."""

VISITS: dict[str, list[str]] = {
    "sign-in": ["/sign-in"],
    "account": ["/account"],
    "users": ["/users", "/users?search=nobody-has-this-name"],
    "user-new": ["/users/new"],
    "projects": ["/projects"],
    "project": ["/projects/{project}"],
    "project-new": ["/projects/new"],
    "project-edit": ["/projects/{project}/edit"],
    "clusters": ["/clusters"],
    "cluster": ["/clusters/{cluster}"],
    "single-trust": ["/help/single-trust"],
    "environments": ["/environments", "/environments?search=nothing-has-this-name"],
    "environment-new": ["/environments/new"],
    "environment-edit": ["/environments/{environment}/edit"],
    "environment-copy": ["/environments/{environment}/copy"],
    "environment-delete": ["/environments/{environment}/delete"],
    "compute-resources": ["/compute-resources"],
    "compute-resource-new": ["/compute-resources/new"],
    "compute-resource-edit": ["/compute-resources/{compute}/edit"],
    "compute-resource-copy": ["/compute-resources/{compute}/copy"],
    "compute-resource-delete": ["/compute-resources/{compute}/delete"],
    "workloads": ["/workloads", "/workloads?status=Failed&sort=name", "/workloads?q=nothing-has-this-name", "/workloads?deleted=1"],
    "workload": ["/workloads/{running}", "/workloads/{pending}", "/workloads/{failed}", "/workloads/{deleted}"],
    "workload-tab": ["/workloads/{failed}/logs", "/workloads/{running}/details", "/workloads/{pending}/logs"],
    "workload-pods": ["/workloads/{running}/pods", "/workloads/{failed}/pods"],
    "wizard": [
        "/workloads/new/{draft}/start",
        "/workloads/new/{draft}/setup",
        "/workloads/new/{draft}/master",
        "/workloads/new/{draft}/review",
    ],
    "wizard-asset": ["/workloads/new/{draft}/assets/environment", "/workloads/new/{draft}/assets/compute"],
}
OTHERS = ["/nowhere", "/workloads/00000000-0000-4000-8000-000000000000"]


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One of its own: nobody else's tests look at a busy day."""
    with a_site(tmp_path_factory.mktemp("lively")) as running:
        yield running


@pytest.fixture(scope="module")
def sessions() -> dict[str, Any]:
    return {}


@pytest.fixture(scope="module")
def seeded(site: Site) -> dict[str, str]:
    """The ids of what `lively` put there, by name."""
    ids: dict[str, str] = json.loads(site.server.python(LIVELY))
    return ids


def test_every_address_is_visited_or_has_its_reason_not_to_be() -> None:
    assert set(VISITS) | set(UNSEEN) == set(EVERY)
    assert set(VISITS) & set(UNSEEN) == set()


@pytest.mark.parametrize("at", [path for paths in VISITS.values() for path in paths] + OTHERS)
def test_a_page_is_accessible_and_fits(sign_in: SignIn, page: Page, seeded: dict[str, str], at: str) -> None:
    if at != "/sign-in":
        sign_in("alice")
    page.goto(at.format(**seeded))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    fits(page)
    axe(page)
    page.set_viewport_size({"width": 360, "height": 800})
    axe(page)
