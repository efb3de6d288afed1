"""Clusters in a browser: a connection is tried without losing what was typed, and what cannot be
undone is asked first.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits
from tests.cast import NOWHERE


@pytest.fixture
def page_of_alice(sign_in: SignIn, page: Page) -> Page:
    sign_in("alice")
    return page


def test_a_connection_is_tried_and_everything_typed_is_still_there(page_of_alice: Page) -> None:
    page = page_of_alice
    page.goto("/clusters/new")
    page.get_by_label("Name").fill("tried-out")
    page.get_by_role("textbox", name="Kubeconfig", exact=True).fill(NOWHERE)
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("The cluster refuses connections.")).to_be_visible()
    axe(page)
    fits(page)
    expect(page.get_by_role("textbox", name="Kubeconfig", exact=True)).to_have_value(NOWHERE)
    page.get_by_role("button", name="Add cluster").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("tried-out")


def test_only_the_fields_of_the_chosen_way_are_there(page_of_alice: Page) -> None:
    page = page_of_alice
    page.goto("/clusters/new")
    expect(page.get_by_role("textbox", name="Kubeconfig", exact=True)).to_be_visible()
    help_text = page.locator("#id_kubeconfig_helptext")
    expect(help_text.locator("code")).to_have_text("kubectl config view --raw --minify --flatten")
    expect(help_text).not_to_contain_text("`")
    page.get_by_label("Paste a kubeconfig").focus()
    page.keyboard.press("ArrowDown")
    expect(
        page.get_by_role("textbox", name="Address of the API server", exact=True)
    ).to_be_visible()
    expect(page.get_by_role("textbox", name="Kubeconfig", exact=True)).to_be_hidden()
    page.get_by_role("textbox", name="Address of the API server", exact=True).fill(
        "https://169.254.169.254"
    )
    page.get_by_role("textbox", name="Token", exact=True).fill("t")
    page.keyboard.press("Enter")
    expect(page.get_by_text("metadata address")).to_be_visible()
    expect(page.get_by_role("textbox", name="Address of the API server", exact=True)).to_have_value(
        "https://169.254.169.254"
    )


def test_a_cluster_with_something_on_it_is_removed_only_when_that_is_ticked(
    page_of_alice: Page, site: Site
) -> None:
    page = page_of_alice
    page.goto(f"/clusters/{site.cluster}")
    page.get_by_role("link", name="Remove").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Something hangs on it")).to_be_visible()
    axe(page)
    dialog.get_by_role("button", name="Remove").click()
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("here")


def test_disabling_is_asked_first(page_of_alice: Page) -> None:
    page = page_of_alice
    page.goto("/clusters/new")
    page.get_by_label("Name").fill("to-be-disabled")
    page.get_by_role("textbox", name="Kubeconfig", exact=True).fill(NOWHERE)
    page.get_by_role("button", name="Add cluster").click()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_text("The cluster is disabled", exact=True)).to_be_visible()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Check now")).to_be_visible()


def test_a_check_that_was_asked_for_is_waited_for_on_the_page(
    page_of_alice: Page, site: Site
) -> None:
    page = page_of_alice
    page.goto(f"/clusters/{site.cluster}")
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_text("It is being asked")).to_be_visible()
    site.server.python(
        "from clusters.tasks import check\nfrom clusters.models import "
        "Cluster\ncheck(str(Cluster.objects.get(name='here').pk))"
    )
    expect(page.get_by_text("It is being asked")).to_be_hidden()
