"""Every page there is, at all our widths and in both themes. The pages come from the URL table: a
new one needs its visit here.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from environments.models import Credential, DataSource
from tests.browser.conftest import SignIn, Site, a_context, a_site, a_tab, axe, fits
from tests.console.addresses import EVERY

LIVELY = """
import json
from tests.lively import lively
print(json.dumps(lively()))
"""

PARTS = "a part of a page, seen there"
ANSWERS = "an answer to a script or a file, not a page"
ACTS = "only acts, and answers with a page that is visited"

UNSEEN: dict[str, str] = {
    **dict.fromkeys(
        (
            "healthz",
            "readyz",
            "metrics",
            "workloads-changes",
            "workloads-live",
            "workload-live",
            "workloads-csv",
            "audit-export",
        ),
        ANSWERS,
    ),
    **dict.fromkeys(
        ("log-window", "log-search", "log-stream", "log-download", "wizard-save"), ANSWERS
    ),
    **dict.fromkeys((name for name in EVERY if name.startswith("api-")), ANSWERS),
    **dict.fromkeys(
        ("forecasts-csv", "overview-allocation", "overview-csv", "project-allocation"),
        ANSWERS,
    ),
    **dict.fromkeys(
        (
            "workload-metric-frames",
            "workload-timeline-svg",
            "project-metric-frames",
            "node-metric-frames",
            "node-pool-metric-frames",
        ),
        ANSWERS,
    ),
    **dict.fromkeys(
        (
            "workload-head",
            "workload-events",
            "workload-pod-changes",
            "workload-delivery",
            "workload-training",
            "workload-timeline-lanes",
            "cluster-checks",
            "project-now",
            "wizard-templates",
            "wizard-machines",
            "wizard-preflight",
            "wizard-alternatives",
        ),
        PARTS,
    ),
    **dict.fromkeys(
        (
            "sign-out",
            "account-shortcuts",
            "home",
            "workload-new",
            "workload-stop",
            "workload-run",
            "workload-exclude-node",
            "workload-delete",
        ),
        ACTS,
    ),
    **dict.fromkeys(
        (
            "sign-on-test",
            "sessions-end-others",
            "session-end",
            "user-second-factor-reset",
            "user-sessions-end",
        ),
        ACTS,
    ),
    **dict.fromkeys(("user-keys-end", "user-key-end"), ACTS),
    **dict.fromkeys(
        ("sign-in-code", "sign-on", "sign-on-callback", "sign-on-connect", "sign-on-disconnect"),
        "seen in test_sign_on.py, on its way",
    ),
    **dict.fromkeys(
        ("user-reset", "user-active", "person-add", "person-role", "person-remove"), ACTS
    ),
    **dict.fromkeys(
        (
            "access-rule-delete",
            "account-secret",
            "account-delete",
            "account-enabled",
            "key-secret",
            "key-delete",
            "look-as",
            "look-as-end",
        ),
        ACTS,
    ),
    **dict.fromkeys(
        ("service-account-create", "service-account-rotate", "service-account-delete"), ACTS
    ),
    **dict.fromkeys(("cluster-check", "cluster-enable", "cluster-disable"), ACTS),
    "quota-trial-cancel": ACTS,
    "workloads-bulk": (
        "answers a POST only; without scripts a page of results, tested in tests/workloads"
    ),
}
"""The addresses that nobody looks at by themselves, and why."""

VISITS: dict[str, list[str]] = {
    "sign-in": ["/sign-in"],
    "sign-in-program": ["/sign-in/program", "/sign-in/program?code=NOBODY-HAS-IT"],
    "account": ["/account"],
    "second-factor": ["/account/second-factor"],
    "second-factor-remove": ["/account/second-factor/remove"],
    "second-factor-codes": ["/account/second-factor/codes"],
    "settings": ["/settings"],
    "users": ["/users", "/users?q=nobody-has-this-name"],
    "access-rules": [
        "/access-rules",
        "/access-rules?type=group",
        "/access-rules?q=nothing-has-this-name",
    ],
    "access-rule-new": ["/access-rules/new"],
    "roles": ["/roles", "/roles?q=nothing-has-this-name"],
    "role-new": ["/roles/new", "/roles/new?copy=viewer"],
    "role-edit": ["/roles/{role}/edit"],
    "role-delete": ["/roles/{role}/delete"],
    "accounts": ["/service-accounts"],
    "rest-reference": ["/rest", "/rest?area=workloads&q=post", "/rest?q=nothing-has-this-word"],
    "rest-operation": ["/rest/list_workloads", "/rest/v1_workloads_distributed_create"],
    "account-new": ["/service-accounts/new"],
    "key-new": ["/account/keys/new"],
    "why": ["/why", "/why?permission=users:edit&scope=tenant"],
    "user-new": ["/users/new"],
    "user-keys": ["/users/{keyed}/keys", "/users/{keyless}/keys"],
    "audit": ["/audit", "/audit?event=create&from=2026-01-31", "/audit?q=nothing-has-this-name"],
    "audit-entry": ["/audit/{audit}"],
    "policies-effective": ["/policies/effective"],
    "overview": ["/overview", "/overview?range=30d"],
    "departments": ["/departments", "/departments?q=nothing-has-this-name"],
    "department": ["/departments/{department}"],
    "department-new": ["/departments/new"],
    "department-edit": ["/departments/{department}/edit"],
    "department-delete": ["/departments/{department}/delete"],
    "node-pools": ["/node-pools", "/node-pools?q=nothing-has-this-name"],
    "node-pool": ["/node-pools/{pool}"],
    "node-pool-new": ["/node-pools/new"],
    "node-pool-edit": ["/node-pools/{pool}/edit"],
    "node-pool-delete": ["/node-pools/{pool}/delete"],
    "projects": ["/projects", "/projects?q=nothing-has-this-name"],
    "project": ["/projects/{project}"],
    "project-usage": ["/projects/{project}/usage"],
    "time-machine": [
        "/time-machine",
        "/time-machine?at=2020-01-01T00:00Z",
        "/time-machine?project={project}",
    ],
    "usage": ["/usage", "/usage?month=2026-11&by=workload", "/usage?month=2020-01"],
    "forecasts": ["/forecasts", "/forecasts?horizon=1h&project={project}"],
    "quota-trials": ["/quota-trials"],
    "quota-trial-new": ["/clusters/{cluster}/quota-trial"],
    "quota-trial": ["/quota-trials/{trial}", "/quota-trials/{open_trial}"],
    "project-new": ["/projects/new"],
    "project-edit": ["/projects/{project}/edit"],
    "project-delete": ["/projects/{project}/delete", "/projects/{resting}/delete"],
    "clusters": ["/clusters"],
    "cluster": ["/clusters/{cluster}", "/clusters/{missing}", "/clusters/{disabled}"],
    "cluster-new": ["/clusters/new"],
    "cluster-edit": ["/clusters/{cluster}/edit"],
    "cluster-remove": ["/clusters/{cluster}/remove", "/clusters/{missing}/remove"],
    "cluster-node": [
        "/clusters/{cluster}/nodes/gpu-node-0",
        "/clusters/{cluster}/nodes/gpu-node-3",
    ],
    "single-trust": ["/help/single-trust"],
    "environments": ["/environments", "/environments?q=nothing-has-this-name"],
    "environment": ["/environments/{environment}"],
    "environment-new": ["/environments/new"],
    "environment-edit": ["/environments/{environment}/edit"],
    "environment-copy": ["/environments/{environment}/copy"],
    "environment-delete": ["/environments/{environment}/delete"],
    "compute-resources": ["/compute-resources"],
    "compute-resource": ["/compute-resources/{compute}"],
    "compute-resource-new": ["/compute-resources/new"],
    "compute-resource-edit": ["/compute-resources/{compute}/edit"],
    "compute-resource-copy": ["/compute-resources/{compute}/copy"],
    "compute-resource-delete": ["/compute-resources/{compute}/delete"],
    "data-sources": ["/data-sources", "/data-sources?kind=git"],
    "data-source": ["/data-sources/{source}"],
    "data-source-new": ["/data-sources/new"],
    "data-source-new-of": [f"/data-sources/new/{kind}" for kind in DataSource.Kind.values],
    "data-source-edit": ["/data-sources/{source}/edit"],
    "data-source-copy": ["/data-sources/{source}/copy"],
    "data-source-delete": ["/data-sources/{source}/delete"],
    "credentials": ["/credentials"],
    "credential": ["/credentials/{credential}"],
    "credential-new": ["/credentials/new"],
    "credential-new-of": [f"/credentials/new/{kind}" for kind in Credential.Kind.values],
    "credential-edit": ["/credentials/{credential}/edit"],
    "credential-copy": ["/credentials/{credential}/copy"],
    "credential-delete": ["/credentials/{credential}/delete"],
    "templates": ["/templates"],
    "template": ["/templates/{template}"],
    "template-new": ["/templates/new"],
    "template-edit": ["/templates/{template}/edit"],
    "template-copy": ["/templates/{template}/copy"],
    "template-delete": ["/templates/{template}/delete"],
    "policies": ["/policies"],
    "policy": ["/policies/{policy}"],
    "policy-new": ["/policies/new"],
    "policy-edit": ["/policies/{policy}/edit"],
    "policy-copy": ["/policies/{policy}/copy"],
    "policy-delete": ["/policies/{policy}/delete"],
    "workloads": [
        "/workloads",
        "/workloads?status=Failed&sort=name",
        "/workloads?q=nothing-has-this-name",
        "/workloads?deleted=1",
        "/workloads?image=train&cpu_from=1&column=name,cluster,image,command,memory_request,labels",
    ],
    "workloads-view-new": ["/workloads/views/new?status=Failed"],
    "workloads-view": ["/workloads/views/{view}"],
    "workloads-view-delete": ["/workloads/views/{view}/delete"],
    "workload": [
        "/workloads/{running}",
        "/workloads/{pending}",
        "/workloads/{failed}",
        "/workloads/{deleted}",
    ],
    "workload-tab": [
        "/workloads/{failed}/logs",
        "/workloads/{running}/details",
        "/workloads/{running}/timeline",
        "/workloads/{pending}/logs",
    ],
    "workload-alternatives": ["/workloads/{pending}/alternatives?played=1"],
    "workload-pods": ["/workloads/{running}/pods", "/workloads/{failed}/pods"],
    "wizard": [
        "/workloads/new/{draft}/start",
        "/workloads/new/{draft}/setup",
        "/workloads/new/{draft}/master",
        "/workloads/new/{draft}/review",
    ],
    "wizard-asset": [
        f"/workloads/new/{{draft}}/assets/{asset}"
        for asset in ("environment", "compute", "data-source", "data-source?type=git")
    ],
    "wizard-template": ["/workloads/new/{draft}/template"],
    "template-design": ["/templates/design"],
    "template-redesign": ["/templates/{template}/design"],
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
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """One for all visits: after the first it has the styles and the scripts."""
    with a_context(browser, site.url) as opened:
        yield opened


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    with a_tab(context) as opened:
        yield opened


@pytest.fixture(scope="module")
def row_ids(site: Site) -> dict[str, str]:
    """The ids of what `lively` put there, by name."""
    ids: dict[str, str] = json.loads(site.server.python(LIVELY))
    return ids


def test_every_address_is_visited_or_has_its_reason_not_to_be() -> None:
    assert set(VISITS) | set(UNSEEN) == set(EVERY)
    assert set(VISITS) & set(UNSEEN) == set()


@pytest.mark.sweep
@pytest.mark.parametrize("at", [path for paths in VISITS.values() for path in paths] + OTHERS)
def test_a_page_is_accessible_and_fits(
    sign_in: SignIn, page: Page, row_ids: dict[str, str], at: str
) -> None:
    if at == "/sign-in":
        page.context.clear_cookies()
        page.goto(at)
    else:
        sign_in("alice", at=at.format(**row_ids))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    fits(page)
    # Colours are the same at all widths.
    axe(page, themes=(False,))
    page.set_viewport_size({"width": 360, "height": 800})
    axe(page, themes=(True,))
