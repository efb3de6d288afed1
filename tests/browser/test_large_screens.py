"""Pages on a large screen: short lines, and what belongs together stands together."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site

WIDTH_IN_EM = """element =>
  element.getBoundingClientRect().width / parseFloat(getComputedStyle(element).fontSize)"""
MOST_EM = 52
"""About a hundred characters."""
WAITING = """
from projects.models import Project
from tests.workloads.pods import a_workload
from workloads.models import Workload
workload = a_workload(Project.objects.get(name="team-a"), name="waits-on-a-large-screen")
Workload.objects.filter(pk=workload.pk).update(status="Pending")
"""


def open_large(sign_in: SignIn, address: str) -> Page:
    page = sign_in("alice", at=address)
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(address)
    return page


@pytest.mark.parametrize(
    "address",
    ["/environments/new", "/compute-resources/new", "/data-sources/new/git", "/policies/new"],
)
def test_on_a_large_screen_the_form_of_an_asset_is_no_wider_than_a_step_of_the_wizard(
    sign_in: SignIn, address: str
) -> None:
    page = open_large(sign_in, address)
    box = page.get_by_label("Name", exact=True).bounding_box()
    assert box is not None
    assert box["width"] <= 1120, address


def test_on_a_large_screen_the_lines_of_an_explanation_end_where_one_can_read_them(
    sign_in: SignIn,
) -> None:
    page = open_large(sign_in, "/workloads/new")
    page.get_by_role("textbox", name="Name").fill("wide")
    page.get_by_role("button", name="CONTINUE").first.click()
    explanation = page.get_by_text("Git repositories and S3 buckets are fetched")
    expect(explanation).to_be_visible()
    assert explanation.evaluate(WIDTH_IN_EM) <= MOST_EM


def test_on_a_large_screen_what_a_card_s_head_offers_stands_together_at_its_end(
    sign_in: SignIn, site: Site
) -> None:
    site.server.python(WAITING)
    page = open_large(sign_in, "/overview")
    head = page.locator(".mu-card__head", has_text="Longest waiting")
    link, button = head.locator("#forecasts"), head.get_by_role("link", name="CSV")
    left, right = link.bounding_box(), button.bounding_box()
    assert left is not None
    assert right is not None
    assert right["x"] - (left["x"] + left["width"]) < 40


def test_on_a_large_screen_an_address_to_copy_stands_on_one_line(sign_in: SignIn) -> None:
    page = open_large(sign_in, "/settings")
    box = page.locator("#sign-on-callback").bounding_box()
    assert box is not None
    assert box["height"] < 30
