"""A template in a real browser: saved with a locked field, used by somebody else, and held against
a changed page.
"""

import re

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import SignIn, axe, fits

IMAGE = "team/mine:1"


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_template_with_a_locked_field_is_saved_used_and_tampered_with(
    sign_in: SignIn, page: Page
) -> None:
    bob_saves_one(sign_in("bob", at="/workloads"))
    page.context.clear_cookies()
    alice_starts_from_it(sign_in("alice", at="/workloads"))


def bob_saves_one(page: Page) -> None:
    page.goto("/workloads/new")
    for choice in ("Distributed", "PyTorch"):
        page.get_by_role("radio", name=choice, exact=True).check()
    page.get_by_label(re.compile("^Name")).fill("saved")
    press(page, "CONTINUE")
    page.get_by_role("radio", name="Own values").first.check()
    page.get_by_text("Change for this workload").click()
    page.get_by_label("Image optional", exact=True).fill(IMAGE)
    page.get_by_role("group", name="Compute resource").get_by_role(
        "radio", name="Own values"
    ).check()
    page.get_by_label("Number of workers").fill("3")
    axe(page)
    press(page, "CONTINUE")
    press(page, "CONTINUE")
    page.get_by_role("link", name="Save as template").click()
    page.get_by_label("Name").fill("team-training")
    page.get_by_role("group", name="What runs").get_by_role(
        "checkbox", name="Image", exact=True
    ).check()
    page.get_by_role("group", name="How many").get_by_role(
        "checkbox", name="Number of workers"
    ).check()
    expect(page.get_by_text(IMAGE)).to_be_visible()
    fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    axe(page)
    press(page, "SAVE TEMPLATE")
    expect(page.get_by_text("The template team-training was saved.")).to_be_visible()


def alice_starts_from_it(page: Page) -> None:
    page.goto("/workloads/new")
    late: list[Route] = []
    page.route(re.compile("/workloads/new/[^/]+/templates"), lambda route: late.append(route))
    page.get_by_label("Project").select_option("team-a")
    expect(page.get_by_role("radio", name="Start from scratch")).to_be_checked()
    card = page.get_by_role("radio", name="team-training")
    expect(card).to_be_hidden()
    for choice in ("Distributed", "PyTorch"):
        page.get_by_role("radio", name=choice, exact=True).check()
    card.check()
    # The templates of the project come after one of them was chosen.
    page.locator("#template-choice").evaluate("choice => { choice.dataset.old = ''; }")
    [late_route] = late
    late_route.continue_()
    expect(page.locator("#template-choice:not([data-old])")).to_be_attached()
    expect(card).to_be_checked()
    axe(page)
    page.get_by_label(re.compile("^Name")).fill("train1")
    press(page, "CONTINUE")
    image = page.get_by_label("Image optional", exact=True)
    expect(image).to_have_value(IMAGE)
    expect(image).to_be_disabled()
    expect(page.get_by_text("Set by the template team-training.").first).to_be_visible()
    axe(page)
    page.reload()
    expect(image).to_be_disabled()
    # What the page does not let one type can be sent all the same.
    for name, value in (("image", "evil/image"), ("workers", "99")):
        page.locator(f"[name={name}]").evaluate(
            "(field, value) => { field.disabled = false; field.value = value; }", value
        )
    press(page, "CONTINUE")
    press(page, "CONTINUE")
    expect(page.get_by_text(IMAGE).first).to_be_visible()
    expect(page.get_by_text("evil/image")).to_have_count(0)
    expect(page.get_by_text("4 pods", exact=True)).to_be_visible()
    expect(page.get_by_text("team-training (template, version 1)")).to_be_visible()
    press(page, "CREATE TRAINING")
    # Before its scripts are there, the link leads to the page of the workload, and opens no drawer.
    page.wait_for_url(re.compile(r"/workloads(\?|$)"))
    page.get_by_role("link", name="train1", exact=True).click()
    page.locator("#drawer").get_by_role("link", name="Details", exact=True).click()
    made = page.locator("#made-from")
    expect(made.get_by_role("link", name="team-training")).to_be_visible()
    expect(made).to_contain_text("version 1")
