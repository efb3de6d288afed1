"""An administrator makes a policy, and a researcher is stopped by it at the field: by keyboard,
accessible, at all our widths.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits
from tests.browser.hands import Keyboard

POLICIES = """
from environments.models import Environment, Policy
from projects.models import Project
team = Project.objects.get(name="team-a")
Environment.objects.create(name="forbidden", image="docker.example.com/train:1",
                           architecture="Distributed")
Policy.objects.create(
    name="small-teams",
    project=team,
    rules={
        "workers": {"min": 2, "max": 4, "default": 3},
        "image": {"options": ["registry.example.com/*", "muster/*"]},
        "host_network": {"default": False, "locked": True},
        "labels": {"required": ["cost-centre"]},
    },
)
rules = {"workers": {"max": 9}, "backoff_limit": {"min": 1}}
print(Policy.objects.create(name="wide", project=team, rules=rules).pk)
"""


GONE = """
from environments.models import Environment, Policy
Policy.objects.all().delete()
Environment.objects.filter(name="forbidden").delete()
"""


@pytest.fixture(scope="module")
def policy(site: Site) -> Iterator[str]:
    """One that holds for team-a while these tests run: others use the same site."""
    yield site.server.python(POLICIES).strip()
    site.server.python(GONE)


@pytest.mark.parametrize(
    "at", ["/policies/new", "/policies/{policy}/edit", "/policies/effective?project={team_a}"]
)
def test_a_page_of_policies_is_accessible_and_fits(
    sign_in: SignIn, site: Site, policy: str, at: str
) -> None:
    page = sign_in("alice", "/projects")
    page.goto(at.format(policy=policy, team_a=site.team_a))
    fits(page)
    for section in page.locator("details.mw-more").all():
        section.evaluate("element => { element.open = true }")
    axe(page)
    fits(page)


def test_a_policy_is_made_by_keyboard_alone(sign_in: SignIn, site: Site, policy: str) -> None:
    page = sign_in("alice", "/policies/new")
    hands = Keyboard(page)
    hands.write(page.get_by_label("Name", exact=True), "by-keyboard")
    hands.press(page.locator("summary", has_text="Kind and number of pods"))
    hands.write(page.locator("#id_rule-workers-max"), "many")
    hands.press(page.get_by_role("button", name="CREATE POLICY"))
    expect(page.get_by_text("Workers: the maximum must be a whole number")).to_be_visible()
    axe(page)
    hands.write(page.locator("#id_rule-workers-max"), "64")
    hands.press(page.get_by_role("button", name="CREATE POLICY"))
    expect(page.get_by_role("link", name="by-keyboard", exact=True)).to_be_visible()


def test_a_researcher_is_stopped_at_the_field(sign_in: SignIn, site: Site, policy: str) -> None:
    page: Page = sign_in("bob", "/workloads")
    page.goto("/workloads/new")
    page.get_by_role("radio", name="Distributed").check()
    page.get_by_label("Name", exact=True).fill("policed")
    page.get_by_role("button", name="CONTINUE").click()
    workers = page.get_by_label("Number of workers")
    expect(workers).to_have_value("3")
    expect(workers).to_have_accessible_description(re.compile("2 to 4 by policy small-teams"))
    expect(page.get_by_role("radio", name="forbidden")).to_be_disabled()
    page.locator("#own-security").evaluate("element => { element.open = true }")
    expect(page.get_by_label("Use the host's network")).to_be_disabled()
    axe(page)
    workers.fill("5")
    page.get_by_role("radio", name="Own values").first.check()
    page.get_by_role("button", name="CONTINUE").click()
    # At the field, beside the list of all above it.
    for text in (
        "Workers must be at most 4 (policy small-teams of project team-a).",
        "Labels must have cost-centre",
    ):
        expect(page.locator(".mu-error").filter(has_text=text)).to_be_visible()
    axe(page)
    fits(page)


def test_a_project_s_page_shows_its_policies(sign_in: SignIn, site: Site, policy: str) -> None:
    page = sign_in("vera", f"/projects/{site.team_a}")
    expect(page.get_by_role("region", name="What policies want")).to_contain_text("2 to 4")
    expect(page.get_by_text("Workers: at most 9 has no effect")).to_be_visible()
