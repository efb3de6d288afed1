"""In a browser: single sign-on with a real provider, and a second factor, at every width and in
both themes.
"""

import re
import time
from collections.abc import Iterator

import pytest
from allauth.mfa.totp.internal import auth as totp
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import CAST, a_page, axe, fits
from tests.cast import PASSWORD
from tests.console_server import WebServer
from tests.oidc_provider import CLIENT, SECRET, Provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        running.people = {
            "carol-1": {"preferred_username": "carol", "groups": ["ml-team"]},
            "bob-1": {"preferred_username": "bob"},
        }
        running.asks = True
        yield running


@pytest.fixture(scope="module")
def server(
    browser: Browser, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    given = {
        "oidc_issuer": provider.url,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
        "oidc_name": "Example SSO",
    }
    server = WebServer(tmp_path_factory.mktemp("sign-on"), debug=0, **given)
    server.python("from console.static_files import collect_static_files\ncollect_static_files()")
    with server:
        server.python(CAST)
        provider.redirects = [f"{server.url}/sign-on/callback"]
        yield server


@pytest.fixture
def page(browser: Browser, server: WebServer) -> Iterator[Page]:
    with a_page(browser, server.url) as opened:
        yield opened


def looked_at(page: Page) -> None:
    axe(page)
    fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})


def sign_in(page: Page, name: str) -> None:
    page.goto("/sign-in?next=/account")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_single_sign_on_from_the_button_to_the_page_one_wanted_and_out_again(
    page: Page, provider: Provider
) -> None:
    page.goto("/projects")
    looked_at(page)
    page.get_by_role("button", name="Continue with Example SSO").click()
    expect(page.get_by_role("heading", name="Example SSO")).to_be_visible()
    page.get_by_role("link", name="I am carol-1").click()
    page.wait_for_url("**/projects")
    page.goto("/account")
    expect(page.get_by_text("ml-team")).to_be_visible()
    expect(page.get_by_text("This one")).to_be_visible()
    looked_at(page)
    page.get_by_role("button", name="carol").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out of Muster")).to_be_visible()
    looked_at(page)
    expect(page.get_by_role("link", name="Sign out at Example SSO")).to_have_attribute(
        "href", f"{provider.url}/end?client_id={CLIENT}"
    )
    page.get_by_role("link", name="Sign in again").click()
    page.wait_for_url("**/sign-in")


def test_a_clash_is_told_on_the_sign_in_page(page: Page) -> None:
    page.goto("/sign-in")
    page.get_by_role("button", name="Continue with Example SSO").click()
    page.get_by_role("link", name="I am bob-1").click()
    expect(page.get_by_role("alert")).to_contain_text("There is a user bob of Muster already")
    looked_at(page)


def test_a_second_factor_from_its_picture_to_the_next_sign_in(page: Page) -> None:
    sign_in(page, "vera")
    page.get_by_role("link", name="Set up a second factor").click()
    expect(page.get_by_alt_text("The secret below as a QR code")).to_be_visible()
    assert (
        page.get_by_alt_text("The secret below as a QR code").evaluate(
            "image => image.naturalWidth"
        )
        > 0
    )
    looked_at(page)
    secret = re.sub(r"\s", "", page.locator("#second-factor-secret").inner_text())
    page.get_by_label("Code").fill(code(secret, 0))
    page.get_by_label("Present password").fill(PASSWORD)
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_text("Shown once")).to_be_visible()
    looked_at(page)
    page.get_by_role("link", name="Done").click()
    looked_at(page)
    page.context.clear_cookies()
    sign_in(page, "vera")
    expect(page.get_by_role("heading", name="Enter your code")).to_be_visible()
    looked_at(page)
    # Each is good once, and one period early or late: neither has run out when the server reads it.
    page.get_by_label("Code").fill(code(secret, 1))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/account")
    page.get_by_role("link", name="Remove").click()
    page.get_by_role("dialog").get_by_label("Present password").fill(PASSWORD)
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("link", name="Set up a second factor")).to_be_visible()


def test_an_administrator_tries_the_provider(page: Page) -> None:
    sign_in(page, "alice")
    page.goto("/settings")
    looked_at(page)
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("It publishes keys")).to_be_visible()
    looked_at(page)


def test_one_connects_ones_own_user(page: Page) -> None:
    sign_in(page, "bob")
    page.get_by_role("link", name="Connect", exact=True).click()
    looked_at(page)
    page.get_by_label("Present password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("link", name="I am bob-1").click()
    expect(page.get_by_text("Your user is connected").first).to_be_visible()


def code(secret: str, steps: int) -> str:
    return str(totp.format_hotp_value(totp.hotp_value(secret, int(time.time()) // 30 + steps)))
