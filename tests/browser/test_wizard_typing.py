"""What the wizard's script says and stores of what is typed, in a real browser."""

import uuid

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import SignIn, Site, axe, fits

SUBMITTED = """
from workloads.models import Draft
Draft.objects.filter(pk="{draft}").update(data={{"submitted": "{workload}"}})
"""


def type_name(page: Page, name: str, words: str) -> None:
    """Type a name, and wait for these words about it."""
    page.get_by_label("Name", exact=True).fill(name)
    expect(page.locator("#saved")).to_have_text(words)


def test_input_is_stored_though_another_machine_s_clock_was_ahead(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.clock.set_fixed_time("2040-01-01T00:00:00Z")
    page.goto("/workloads/new")
    type_name(page, "ahead", "Saved")
    page.clock.set_fixed_time("2026-01-01T00:00:00Z")
    for name in ("behind", "behind-again"):
        page.reload()
        type_name(page, name, "Saved")
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("behind-again")


def test_input_is_stored_and_sent_after_a_broken_off_submission(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.goto("/workloads/new")
    type_name(page, "before", "Saved")

    def answer_nothing(route: Route) -> None:
        """Leave the browser where it is, as Escape does while it waits for the page."""
        route.fulfill(status=204)

    page.route(page.url, answer_nothing)
    forward = page.get_by_role("button", name="CONTINUE", exact=True)
    with page.expect_response(page.url):
        forward.click()
    page.unroute(page.url)
    type_name(page, "typed-on", "Saved")
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed-on")
    page.route(page.url, answer_nothing)
    with page.expect_response(page.url):
        forward.click()
    page.unroute(page.url)
    page.get_by_label("Name", exact=True).fill("sent-again")
    forward.click()
    expect(page.get_by_role("heading", name="What runs")).to_be_visible()


def test_input_after_the_submission_is_said_not_to_be_saved(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice")
    page.goto("/workloads/new")
    type_name(page, "before", "Saved")
    draft = page.url.split("/")[-2]
    site.server.python(SUBMITTED.format(draft=draft, workload=uuid.uuid4()))
    type_name(page, "after", "Not saved: this was submitted already")


def test_a_step_that_another_tab_changed_is_shown_before_it_is_replaced(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.goto("/workloads/new")
    type_name(page, "before", "Saved")
    other = page.context.new_page()
    other.goto(page.url)
    type_name(other, "theirs", "Saved")
    other.close()
    type_name(
        page,
        "mine",
        "Not saved: you changed this in another tab or window. CONTINUE shows what.",
    )
    fits(page)
    page.get_by_role("button", name="CONTINUE", exact=True).click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Not saved: it was changed meanwhile by you, in another tab")
    expect(alert).to_contain_text("Name: was before, is now theirs")
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    fits(page)
    axe(page)
    page.get_by_role("button", name="Save anyway").click()
    expect(alert).to_be_hidden()
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    type_name(page, "mine-again", "Saved")
