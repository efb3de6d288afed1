"""Who may do what, in a browser: rules, roles, programs' ways in, and looking as somebody else."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits


def test_an_administrator_gives_several_people_a_role_and_takes_one_away(
    sign_in: SignIn, site: Site
) -> None:
    page = sign_in("alice", "/access-rules")
    page.get_by_role("link", name="New access rule").click()
    dialog = page.get_by_role("dialog", name="New access rule")
    dialog.get_by_label("Name").fill("bob, nobody")
    dialog.get_by_label("Role").select_option("viewer")
    dialog.get_by_label("Scope").select_option(label="Project team-b")
    dialog.get_by_role("button", name="Create access rule").click()
    expect(dialog.get_by_text("There is no user nobody who can sign in")).to_be_visible()
    axe(page)
    dialog.get_by_label("Name").fill("bob, vera")
    dialog.get_by_role("button", name="Create access rule").click()
    expect(page.get_by_text("2 subjects are Viewer now.")).to_be_visible()
    page.get_by_role("button", name="Delete the rule of vera: Viewer, Project team-b").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete rule").click()
    expect(page.get_by_text("vera is not Viewer there any more.")).to_be_visible()
    expect(page.get_by_role("row", name="vera").filter(has_text="team-b")).to_have_count(0)


def test_a_custom_role_is_made_from_boxes_and_deleted(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/roles")
    page.get_by_role("link", name="New role").first.click()
    page.get_by_label("Name").fill("Curator")
    page.get_by_role("checkbox", name="Edit data sources").check()
    page.get_by_role("button", name="Create role").click()
    row = page.get_by_role("row", name="Curator")
    expect(row).to_contain_text("data sources VE")
    # All of the page is in sight: a menu closes when the page scrolls.
    page.set_viewport_size({"width": 1280, "height": 2400})
    page.goto("/roles?q=Cur")
    row.get_by_role("button", name="Actions for Curator").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog", name="Delete Curator?").get_by_role(
        "button", name="Delete role"
    ).click()
    expect(page.get_by_text("Role Curator is deleted.")).to_be_visible()


def test_a_key_of_ones_own_is_shown_once(sign_in: SignIn, site: Site) -> None:
    page = sign_in("vera", "/account")
    page.get_by_role("link", name="New access key").click()
    dialog = page.get_by_role("dialog", name="New access key")
    dialog.get_by_label("Name").fill("notebook")
    dialog.get_by_role("button", name="Create access key").click()
    key_dialog = page.get_by_role("dialog", name="Access key notebook is created")
    expect(key_dialog.locator("#secret-secret")).not_to_be_empty()
    axe(page)
    key_dialog.get_by_role("link", name="Done").click()
    expect(page.get_by_role("row", name="notebook")).to_be_visible()
    axe(page)


A_KEY = """
from projects import personal_keys
from projects.models import User
mallory = User.objects.get(username="mallory")
for name in ("laptop", "cluster"):
    personal_keys.create_key(name, owner=mallory)
print(mallory.pk)
"""


def test_an_administrator_ends_somebodys_keys(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", f"/users/{site.server.python(A_KEY).strip()}/keys")
    axe(page)
    page.get_by_role("button", name="End laptop").click()
    page.get_by_role("alertdialog").get_by_role("button", name="End access key").click()
    expect(page.get_by_text("Access key laptop of mallory has ended.")).to_be_visible()
    expect(page.get_by_role("row", name="laptop")).to_have_count(0)
    expect(page.get_by_role("row", name="cluster")).to_be_visible()
    page.get_by_role("button", name="End all").click()
    page.get_by_role("alertdialog").get_by_role("button", name="End access keys").click()
    expect(page.get_by_text("The access keys of mallory have ended (1).")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", name="No access keys")).to_be_visible()


def test_a_service_account_that_ends(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/service-accounts")
    page.get_by_role("link", name="New service account").first.click()
    dialog = page.get_by_role("dialog", name="New service account")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_label("Scope").select_option(label="Department research")
    dialog.get_by_label("Expires").select_option(label="In 30 days")
    dialog.get_by_role("button", name="Create service account").click()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("row", name="nightly")).to_contain_text("Department research")


def test_looking_as_somebody_else_and_back(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("button", name="Actions for vera").click()
    page.get_by_role("menuitem", name="Look as vera").click()
    expect(page.get_by_text("You look at Muster as vera.")).to_be_visible()
    page.goto(f"/projects/{site.team_a}")
    fits(page)
    axe(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name="Edit (You may not edit projects").press("Enter")
    expect(
        page.get_by_text("You may not edit projects in project team-a. You are Viewer there")
    ).to_be_visible()
    page.get_by_role("button", name="Look as yourself again").click()
    expect(page.get_by_text("You look as yourself again.")).to_be_visible()


def test_a_refused_page_leads_to_why(sign_in: SignIn, page: Page, site: Site) -> None:
    sign_in("bob", "/projects")
    page.goto("/users")
    axe(page)
    page.get_by_role("link", name="Why can't I?").click()
    expect(page.get_by_text("You may not view users in the whole installation.")).to_be_visible()
