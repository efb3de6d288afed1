"""Pages on a phone: what is open is in sight."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SignIn, Site

CODE = """
from projects.models import Project
from tests.workloads.pods import a_workload
workload = a_workload(Project.objects.get(name="team-a"), name="NAME")
print(workload.pk)
"""


@pytest.mark.parametrize("tab", ["Details", "Logs"])
def test_on_a_phone_the_open_tab_of_a_workload_is_in_sight(
    sign_in: SignIn, site: Site, tab: str
) -> None:
    workload = site.server.python(CODE.replace("NAME", f"narrow-{tab.lower()}")).strip()
    page = sign_in("bob", at="/workloads")
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"/workloads/{workload}/{tab.lower()}")
    tabs = page.get_by_role("navigation", name="Details")
    expect(tabs.locator("[aria-current]")).to_have_text(tab)
    expect(tabs.locator("[aria-current]")).to_be_in_viewport(ratio=0.9)
    # And where a part of the page puts it there.
    tabs.get_by_role("link").first.click()
    expect(tabs.locator("[aria-current]")).not_to_have_text(tab)
    tabs.get_by_role("link", name=tab).click()
    expect(tabs.locator("[aria-current]")).to_have_text(tab)
    expect(tabs.locator("[aria-current]")).to_be_in_viewport(ratio=0.9)
