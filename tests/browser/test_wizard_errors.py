"""From what is wrong with a step of the wizard to its field, and assets that are made beside it."""

from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import SignIn, axe


def open_setup(page: Page, name: str) -> None:
    page.goto("/workloads/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="CONTINUE", exact=True).click()
    expect(page.get_by_role("heading", name="What runs")).to_be_visible()


def test_each_error_of_a_step_is_a_link_to_its_field(sign_in: SignIn) -> None:
    page = sign_in("alice")
    open_setup(page, "has-errors")
    page.get_by_role("button", name="Add volume").click()
    page.get_by_label("Name in the cluster").fill("No such name")
    page.get_by_role("button", name="CONTINUE", exact=True).click()
    wrong = page.get_by_role("alert").filter(has_text="Something here cannot be used")
    expect(wrong).to_be_focused()
    axe(page)
    for words, field in (
        ("Environment: Choose an environment", page.locator("[name=environment_choice]").first),
        ("Name in the cluster: The claim of volume 1", page.get_by_label("Name in the cluster")),
        ("Container path: ", page.get_by_label("Container path").last),
    ):
        wrong.get_by_role("link", name=words).press("Enter")
        expect(field).to_be_focused()
        expect(field).to_be_in_viewport()


def test_an_asset_that_is_clicked_twice_is_sent_once_and_keeps_to_the_style_policy(
    sign_in: SignIn,
) -> None:
    page = sign_in("alice")
    open_setup(page, "has-asset")
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))
    # As password managers and the corner of a text area do.
    page.evaluate("for (const each of document.querySelectorAll('input')) each.style.color = 'red'")
    page.get_by_role("button", name="NEW ENVIRONMENT").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("clicked-twice")
    dialog.get_by_label("Image", exact=True).fill("train:1")
    dialog.get_by_role("button", name="CREATE ENVIRONMENT").dblclick()
    expect(page.get_by_role("radio", name="clicked-twice")).to_be_checked()
    expect(dialog).to_be_hidden()
    posts = [each for each in requests if each.method == "POST"]
    assert len([each for each in posts if "/assets/environment" in each.url]) == 1
