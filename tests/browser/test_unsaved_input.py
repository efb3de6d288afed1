"""What somebody has typed and not sent stays until they send it or throw it away."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import SignIn, Site
from tests.cast import PASSWORD

TYPIST = """
from projects import granting
from projects.models import Project, User
from projects.permissions import VIEWER
from projects.scopes import project_scope
from tests.cast import PASSWORD
typist = User.objects.create_user("typist", password=PASSWORD)
scope = project_scope(Project.objects.get(name="team-a"))
granting.grant_role(VIEWER, to=typist, scope=scope, by=User.objects.get(username="alice"))
"""
REVOKE = """
from projects.models import AccessRule
AccessRule.objects.filter(user__username="typist").delete()
"""


def ask_to_close(page: Page) -> Locator:
    page.keyboard.press("Escape")
    question = page.get_by_role("alertdialog", name="Throw away what you typed?")
    expect(question).to_be_visible()
    return question


def test_a_page_that_has_to_be_loaded_anew_waits_until_what_is_typed_is_done_with(
    sign_in: SignIn, site: Site
) -> None:
    site.server.python(TYPIST)
    page = sign_in("typist", at="/workloads")
    page.evaluate("window.marked = true")
    page.get_by_label("View", exact=True).click()
    page.get_by_role("link", name="Save as a view").click()
    name = page.locator("#dialog").get_by_label("Name", exact=True)
    name.fill("half a na")
    site.server.python(REVOKE)
    expect(page.locator(".mu-toast")).to_contain_text("What you may see has changed")
    expect(name).to_have_value("half a na")
    assert page.evaluate("window.marked")
    with page.expect_navigation():
        page.locator("#dialog").get_by_text("Cancel", exact=True).click()
    assert not page.evaluate("window.marked")


def test_what_was_typed_stays_when_the_session_has_ended_until_the_form_is_closed(
    sign_in: SignIn,
) -> None:
    page = sign_in("alice", "/users")
    page.evaluate("window.marked = true")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    name = dialog.get_by_label("User name")
    name.fill("half-typed")
    page.context.clear_cookies(name="muster_session")
    dialog.get_by_role("button", name="Create user").click()
    expect(page.locator(".mu-toast")).to_contain_text("You are signed out, so nothing was done")
    expect(name).to_have_value("half-typed")
    assert page.evaluate("window.marked")
    # It still counts as unsaved.
    ask_to_close(page).get_by_role("button", name="Throw it away").click()
    page.wait_for_url("**/sign-in?**")


def test_what_was_typed_is_taken_after_a_new_sign_in_in_another_tab(sign_in: SignIn) -> None:
    page = sign_in("alice", "/environments/new")
    page.get_by_label("Name", exact=True).fill("typed-before")
    page.get_by_label("Image", exact=True).fill("train:1")
    page.context.clear_cookies()
    # The new session has another CSRF token than the form.
    other = page.context.new_page()
    other.goto("/sign-in?next=/projects")
    other.get_by_label("User name").fill("alice")
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    other.wait_for_url("**/projects")
    other.close()
    page.get_by_role("main").get_by_role("button", name="CREATE ENVIRONMENT").click()
    expect(page.locator(".mu-toast")).to_contain_text("The environment typed-before was saved.")


def test_what_was_sent_without_a_session_leads_back_to_its_page(
    sign_in: SignIn, site: Site
) -> None:
    page = sign_in("alice", f"/projects/{site.team_a}")
    page.context.clear_cookies(name="muster_session")
    page.get_by_role("button", name="Add person").click()
    expect(page.locator(".mu-toast")).to_contain_text("You were signed out, so nothing was done")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/projects/{site.team_a}")


def test_escape_asks_before_it_closes_a_form_with_something_typed(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    opener = page.get_by_role("link", name="New user")
    opener.click()
    dialog = page.locator("#dialog")
    name = dialog.get_by_label("User name")
    name.fill("half-typed")
    ask_to_close(page).get_by_role("button", name="Keep it").click()
    expect(name).to_have_value("half-typed")
    expect(name).to_be_focused()
    # As often as one likes, and a question that is itself left is a no.
    for _ in range(3):
        question = ask_to_close(page)
        page.keyboard.press("Escape")
        expect(question).to_be_hidden()
        expect(name).to_have_value("half-typed")
    ask_to_close(page).get_by_role("button", name="Throw it away").click()
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_a_question_right_after_the_last_one_is_answered(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    name = dialog.get_by_label("User name")
    name.fill("half-typed")
    question = ask_to_close(page)
    # Both before the browser tells of the first one's end.
    name.evaluate("""field => {
        document.getElementById("confirm").close();
        field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    }""")
    question.get_by_role("button", name="Throw it away").click()
    expect(dialog).to_be_hidden(timeout=5_000)


def test_escape_asks_before_it_closes_a_form_that_came_back_with_errors(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("bob")
    dialog.get_by_role("button", name="Create user").click()
    expect(dialog).to_contain_text("There is a user of this name already")
    ask_to_close(page).get_by_role("button", name="Keep it").click()
    expect(dialog.get_by_label("User name")).to_have_value("bob")
    # What was typed and taken back again is nothing to ask about.
    ask_to_close(page).get_by_role("button", name="Throw it away").click()
    page.get_by_role("link", name="New user").click()
    dialog.get_by_label("User name").fill("x")
    dialog.get_by_label("User name").fill("")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
