"""Every page of the organisation, looked at by axe in both themes, at all our widths."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits

PAGES = [
    "/projects",
    "/projects/new",
    "/projects/{team_a}",
    "/projects/{team_a}/edit",
    "/clusters",
    "/clusters/{cluster}",
    "/users",
    "/users?q=nobody-has-this-name",
    "/users/new",
    "/account",
    "/help/single-trust",
    "/nowhere",
]


@pytest.mark.parametrize("at", PAGES)
def test_a_page_is_accessible_and_fits(sign_in: SignIn, site: Site, at: str) -> None:
    page = sign_in("alice", "/projects")
    page.goto(at.format(team_a=site.team_a, cluster=site.cluster))
    fits(page)
    axe(page)


def test_the_sign_in_page_is_accessible_and_fits(page: Page) -> None:
    page.goto("/sign-in")
    fits(page)
    axe(page)


def test_open_menus_and_dialogs_are_accessible(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("button", name="Actions for bob").click()
    expect(page.get_by_role("menuitem", name="Reset password")).to_be_visible()
    axe(page)
    page.get_by_role("menuitem", name="Deactivate").click()
    expect(page.get_by_role("alertdialog", name="Deactivate bob?")).to_be_visible()
    axe(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="New user").click()
    expect(page.get_by_role("dialog", name="New user")).to_be_visible()
    axe(page)


def test_a_form_with_errors_is_accessible(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/projects/new")
    page.get_by_role("button", name="Create project").click()
    expect(page.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    axe(page)


def test_a_project_without_people_and_one_seen_by_a_viewer_are_accessible(sign_in: SignIn, site: Site) -> None:
    page = sign_in("vera", f"/projects/{site.team_a}")
    expect(page.get_by_role("button", name="Add person")).to_have_count(0)
    axe(page)
