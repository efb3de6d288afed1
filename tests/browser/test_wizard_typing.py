"""What the wizard's script says and stores of what is typed, in a real browser."""

import uuid

from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site

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


def test_input_after_the_submission_is_said_not_to_be_saved(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice")
    page.goto("/workloads/new")
    type_name(page, "before", "Saved")
    draft = page.url.split("/")[-2]
    site.server.python(SUBMITTED.format(draft=draft, workload=uuid.uuid4()))
    type_name(page, "after", "Not saved: this was submitted already")
