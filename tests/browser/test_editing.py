"""Two administrators change one asset: the second, in a browser, is shown what changed meanwhile
and saves on purpose.
"""

from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits

MADE = """
from environments.models import Environment
print(Environment.objects.create(name="shared-image", image="team/first", framework="PyTorch").pk)
"""
CHANGED = """
from environments.models import Environment
Environment.objects.filter(name="shared-image").update(image="team/theirs", version=2)
"""


def test_a_change_that_comes_too_late_is_shown_and_can_be_saved_anyway(
    site: Site, sign_in: SignIn, page: Page
) -> None:
    key = site.server.python(MADE).strip()
    sign_in("alice", f"/environments/{key}/edit")
    page.get_by_label("Image", exact=True).fill("team/mine")
    site.server.python(CHANGED)
    page.get_by_role("button", name="SAVE", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Image: was team/first, is now team/theirs")
    expect(page.get_by_label("Image", exact=True)).to_have_value("team/mine")
    fits(page)
    axe(page)
    page.get_by_role("button", name="Save anyway").click()
    expect(page.get_by_role("heading", name="Environments")).to_be_visible()
    expect(page.get_by_role("row", name="shared-image")).to_contain_text("team/mine")
