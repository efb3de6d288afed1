"""Pages on a phone: what is open is in sight."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SignIn, Site, fits

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


LONG = """
from environments.models import Environment
from projects.models import User
Environment.objects.create(name="E" * 63, image="team/train:1", framework="PyTorch")
User.objects.create_user("u" * 150)
print(Environment.objects.get(name="E" * 63).pk)
"""
LEFT_OVER = """() => {
  const box = document.querySelector(".mu-table-box");
  return box.clientWidth - document.querySelector("#listing tbody th").offsetWidth;
}"""
"""How many pixels of a table its first column, which stays in sight, leaves to the others."""


def test_on_a_phone_a_long_name_leaves_room_for_the_other_columns(
    sign_in: SignIn, site: Site
) -> None:
    environment = site.server.python(LONG).strip()
    page = sign_in("alice", at="/users?q=uuuu")
    page.set_viewport_size({"width": 360, "height": 800})
    for address in ("/users?q=uuuu", "/environments?q=EEEE"):
        page.goto(address)
        expect(page.locator("#listing tbody th")).to_have_count(1)
        assert page.evaluate(LEFT_OVER) > 120, address
    for address in (f"/environments/{environment}", f"/environments/{environment}/edit"):
        page.goto(address)
        fits(page)


def test_on_a_phone_a_long_name_of_a_workload_ends_in_an_ellipsis(
    sign_in: SignIn, site: Site
) -> None:
    site.server.python(CODE.replace("NAME", "w" * 50))
    page = sign_in("bob", at="/workloads?q=wwww")
    page.set_viewport_size({"width": 360, "height": 800})
    name = page.locator(".wl-table tbody .mu-name a")
    expect(name).to_have_text("w" * 50)
    # The link is cut itself: a cell shows no ellipsis for a link that is a box.
    assert name.evaluate("each => each.offsetWidth <= each.closest('.mu-name').clientWidth")


def test_on_a_phone_a_name_of_usual_length_stands_on_one_line(sign_in: SignIn, site: Site) -> None:
    site.server.python(
        "from environments.builtin_assets import ensure_builtin_assets; ensure_builtin_assets()"
    )
    page = sign_in("alice", at="/environments")
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/environments?q=slow-loader-pytorch")
    box = page.get_by_role("link", name="slow-loader-pytorch", exact=True).bounding_box()
    assert box is not None
    assert box["height"] < 30
