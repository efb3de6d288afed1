"""What happens to the focus, and to what was typed, when a form is refused."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import SignIn, Site, axe

INSIDE = """title => {
  const [inner, outer] = [title, title.parentElement].map((each) => each.getBoundingClientRect());
  return inner.top >= outer.top && inner.bottom <= outer.bottom && inner.left >= outer.left;
}"""
"""Whether all of an element is inside its parent."""


@pytest.mark.parametrize(
    ("at", "opener"),
    [
        ("/node-pools", "New node pool"),
        ("/departments", "New department"),
        ("/projects", "New project"),
        ("/access-rules", "New access rule"),
        ("/service-accounts", "New service account"),
    ],
)
def test_a_refused_dialog_goes_on_at_its_first_wrong_field(
    sign_in: SignIn, at: str, opener: str
) -> None:
    page = sign_in("alice", at)
    page.get_by_role("main").get_by_role("link", name=opener).first.click()
    dialog = page.locator("#dialog")
    dialog.locator("button[type=submit].pf-m-primary").press("Enter")
    expect(dialog.locator("[aria-invalid=true]").first).to_be_focused()
    axe(page, themes=(False,))


def test_a_refused_page_goes_on_at_what_is_wrong(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/roles/new")
    page.get_by_label("Name", exact=True).fill("nothing at all")
    page.get_by_role("button", name="Create role").click()
    expect(page.locator("#permissions-error")).to_be_focused()
    page.goto(f"/clusters/{site.cluster}/quota-trial")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("[data-wrong]")).to_be_focused()
    expect(page.locator("[data-wrong]")).to_contain_text("Nothing is changed")
    quota = page.get_by_label("GPU quota of team-a")
    quota.fill("-1")
    page.get_by_role("button", name="Try it").click()
    expect(quota).to_be_focused()
    expect(quota).to_have_value("-1")
    expect(page.get_by_role("main")).to_contain_text("It must be at least 0.")


def test_a_button_gets_the_focus_back_when_nothing_comes_of_it(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("half-typed")
    page.context.clear_cookies(name="muster_session")
    send = dialog.get_by_role("button", name="Create user")
    send.press("Enter")
    expect(page.locator(".mu-toast")).to_contain_text("You are signed out, so nothing was done")
    expect(send).to_be_focused()


def test_a_form_is_sent_once_however_often_its_button_is_pressed(sign_in: SignIn) -> None:
    page = sign_in("alice", "/compute-resources/new")
    page.get_by_label("Name", exact=True).fill("pressed-twice")
    sent = []

    def answer_late(route: Route) -> None:
        sent.append(route.request.method)
        page.wait_for_timeout(300)
        route.continue_()

    page.route("**/compute-resources/new", answer_late)
    button = page.get_by_role("main").get_by_role("button", name="CREATE COMPUTE RESOURCE").last
    # As two fast presses come: the second before the browser has begun to leave the page.
    button.evaluate("button => { button.click(); window.setTimeout(() => button.click(), 50); }")
    expect(page.locator(".mu-toast")).to_contain_text(
        "The compute resource pressed-twice was saved"
    )
    assert sent == ["POST"]


def test_a_form_that_nothing_came_of_says_so_and_its_other_buttons_work(sign_in: SignIn) -> None:
    page = sign_in("alice", "/workloads/new")
    page.get_by_label("Name", exact=True).fill("sent-once")
    forward = page.get_by_role("button", name="CONTINUE", exact=True)
    forward.click()
    expect(page.get_by_role("heading", name="What runs")).to_be_visible()
    sent: list[str | None] = []

    def answer_nothing(route: Route) -> None:
        """Leave the browser where it is, as Escape does while it waits for the page."""
        sent.append(route.request.post_data)
        route.fulfill(status=204)

    page.route(page.url, answer_nothing)
    with page.expect_response(page.url):
        forward.click()
    forward.click()
    expect(page.locator(".mu-toast")).to_contain_text(
        "It is being sent. Load the page again if nothing comes."
    )
    # The first button of the form, which Enter presses, asks for the same.
    page.locator("#wizard > button.mw-unseen").dispatch_event("click")
    expect(page.locator(".mu-toast")).to_contain_text("2 times")
    with page.expect_response(page.url):
        page.get_by_role("button", name="BACK", exact=True).click()
    assert ["go=back" in str(each) for each in sent] == [False, True]


def test_what_is_shown_once_gets_the_focus(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("newcomer")
    dialog.get_by_role("button", name="Create user").press("Enter")
    expect(dialog.get_by_role("heading", name="User newcomer is created")).to_be_focused()


def test_what_is_shown_once_is_not_closed_unasked(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    opener = page.get_by_role("link", name="New user")
    opener.click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("another-newcomer")
    dialog.get_by_role("button", name="Create user").click()
    secret = dialog.locator("[data-shown-once]")
    expect(secret).to_be_visible()
    question = page.get_by_role("alertdialog", name="Close without another look?")
    closings: tuple[Callable[[], None], ...] = (
        lambda: page.keyboard.press("Escape"),
        dialog.get_by_role("button", name="Close").click,
        lambda: page.mouse.click(5, 5),
    )
    for close in closings:
        close()
        expect(question).to_be_visible()
        question.get_by_role("button", name="Keep it open").click()
        expect(question).to_be_hidden()
        expect(secret).to_be_visible()
    axe(page)
    page.keyboard.press("Escape")
    question.get_by_role("button", name="Close it").click()
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_done_closes_what_is_shown_once_without_a_question(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("last-newcomer")
    dialog.get_by_role("button", name="Create user").click()
    dialog.get_by_role("link", name="Done").click()
    expect(page.get_by_role("rowheader", name="last-newcomer")).to_be_visible()


def test_the_title_of_the_columns_is_inside_their_panel(sign_in: SignIn) -> None:
    page = sign_in("alice", "/workloads")
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.locator("#columns summary").click()
        title = page.locator("#columns legend")
        expect(title).to_be_visible()
        assert title.evaluate(INSIDE), width
        page.keyboard.press("Escape")
