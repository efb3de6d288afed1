"""Menus, dialogs, errors and empty places of the organisation, looked at by axe; its pages are in
`test_every_page`.
"""

from playwright.sync_api import expect

from tests.browser.conftest import SignIn, Site, axe


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


def test_a_project_without_people_and_one_seen_by_a_viewer_are_accessible(
    sign_in: SignIn, site: Site
) -> None:
    page = sign_in("vera", f"/projects/{site.team_a}")
    expect(page.get_by_role("button", name="Add person")).to_have_count(0)
    axe(page)
