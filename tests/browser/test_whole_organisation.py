"""An administrator sets up a team from nothing, a researcher of it launches from its template and
is stopped by its policy at the field.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site, a_page, a_site, axe
from tests.browser.hands import Hands, Keyboard, Mouse
from tests.cast import PASSWORD

NEW_PASSWORD = "a whole new battery"

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("organisation")) as running:
        yield running


class Administrator:
    """Somebody who knows the words of the pages, and no address: only where the navigation
    leads.
    """

    def __init__(self, page: Page, hands: Hands, team: str) -> None:
        self.page = page
        self.hands = hands
        self.team = team
        self.department = f"vision-{team}"
        self.inside = page.get_by_role("main")
        """Where the fields are: the page, or the dialog that is open."""

    def goes_to(self, place: str) -> None:
        self.inside = self.page.get_by_role("main")
        self.hands.press(
            self.page.get_by_role("navigation", name="Main").get_by_role(
                "link", name=place, exact=True
            )
        )
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(place)

    def opens(self, words: str, *, dialog: bool = False) -> None:
        self.hands.press(self.inside.get_by_role("link", name=words).first)
        if dialog:
            self.inside = self.page.get_by_role("dialog")
            expect(self.inside).to_be_visible()

    def writes(self, **fields: str) -> None:
        for label, text in fields.items():
            words = re.escape(label.replace("_", " "))
            self.hands.write(
                self.inside.get_by_label(re.compile(f"^{words}( optional)?$")).first, text
            )

    def selects(self, label: str, option: str) -> None:
        self.hands.select(
            self.inside.get_by_label(re.compile(f"^{label}( optional)?$")).first, option
        )

    def presses(self, words: str) -> None:
        self.hands.press(self.inside.get_by_role("button", name=words, exact=True))

    def looks(self) -> None:
        axe(self.page)

    def makes_a_department(self) -> None:
        self.goes_to("Departments")
        self.opens("New department", dialog=True)
        self.writes(Name=self.department, GPU_quota="8")
        self.looks()
        self.presses("Create department")
        expect(self.page.get_by_role("heading", name=self.department)).to_be_visible()

    def makes_a_project(self, name: str) -> None:
        self.goes_to("Projects")
        self.opens("New project", dialog=True)
        self.writes(Name=name, Department=self.department, GPU_quota="2")
        self.looks()
        self.presses("Create project")
        expect(self.page.get_by_role("heading", name=name, level=1)).to_be_visible()

    def makes_a_user(self, name: str) -> str:
        """The temporary password."""
        self.goes_to("Users")
        self.opens("New user", dialog=True)
        self.writes(User_name=name)
        self.presses("Create user")
        secret = self.page.locator("#secret-password")
        expect(secret).to_be_visible()
        found = str(secret.evaluate("element => element.value || element.textContent")).strip()
        self.hands.press(self.page.get_by_role("dialog").get_by_role("link", name="Done"))
        return found

    def gives(self, person: str, role: str, project: str) -> None:
        self.goes_to("Projects")
        self.opens(project)
        self.inside = self.page.get_by_role("form", name="Add a person")
        self.writes(User_name=person)
        self.selects("Role", role)
        self.presses("Add person")
        expect(self.page.get_by_role("row").filter(has_text=person)).to_be_visible()

    def makes_an_asset(
        self, table: str, name: str, subtype: str = "", *, scope: str = "", **fields: str
    ) -> None:
        self.goes_to(table)
        self.opens("New ")
        if subtype:
            self.opens(subtype)
        self.writes(Name=name)
        self.selects("Scope", scope or f"Department {self.department}")
        self.writes(**fields)

    def saves(self, name: str) -> None:
        self.looks()
        self.hands.press(self.inside.get_by_role("button", name=re.compile("^CREATE ")))
        expect(self.page.get_by_role("link", name=name, exact=True)).to_be_visible()


def sets_up(admin: Administrator) -> str:
    """Everything that a team needs; the temporary password of its researcher."""
    team = admin.team
    admin.makes_a_department()
    for project in (team, f"other-{team}"):
        admin.makes_a_project(project)
    password = admin.makes_a_user(f"lena-{team}")
    admin.gives(f"lena-{team}", "L2 researcher", team)
    admin.makes_an_asset("Environments", f"env-{team}", Image="registry.example.com/vision:1")
    admin.saves(f"env-{team}")
    admin.makes_an_asset("Compute resources", f"gpu-{team}", GPU_devices_per_pod="1")
    admin.saves(f"gpu-{team}")
    admin.makes_an_asset(
        "Credentials",
        f"login-{team}",
        "User and password",
        User="robot",
        Password_or_token="s3cret",
    )
    admin.saves(f"login-{team}")
    admin.makes_an_asset(
        "Data sources",
        f"code-{team}",
        "Git",
        Repository="https://git.example.com/vision/train.git",
        Container_path="/code",
    )
    admin.selects("Credential", f"login-{team}")
    admin.saves(f"code-{team}")
    makes_a_policy(admin)
    makes_a_template(admin)
    return password


def makes_a_policy(admin: Administrator) -> None:
    admin.makes_an_asset("Policies", f"rules-{admin.team}", scope=f"Project {admin.team}")
    admin.hands.press(admin.page.locator("summary", has_text="Kind and number of pods"))
    admin.hands.write(admin.page.locator("#id_rule-workers-max"), "2")
    admin.saves(f"rules-{admin.team}")


def makes_a_template(admin: Administrator) -> None:
    page, hands = admin.page, admin.hands
    admin.goes_to("Templates")
    admin.opens("New template")
    admin.selects("Project", admin.team)
    for choice in ("Distributed", "PyTorch"):
        hands.choose(page.get_by_role("radio", name=choice, exact=True))
    admin.presses("CONTINUE")
    for choice in (f"env-{admin.team}", f"gpu-{admin.team}"):
        hands.choose(page.get_by_role("radio", name=choice))
    hands.choose(page.get_by_role("checkbox", name=f"code-{admin.team}"))
    admin.writes(Number_of_workers="2")
    admin.looks()
    admin.presses("CONTINUE")
    admin.presses("CONTINUE")
    admin.presses("SAVE TEMPLATE")
    admin.writes(Name=f"train-{admin.team}")
    admin.selects("Scope", f"Project {admin.team}")
    admin.looks()
    admin.presses("SAVE TEMPLATE")
    expect(page.get_by_text(f"The template train-{admin.team} was saved.")).to_be_visible()


def launches(page: Page, hands: Hands, name: str, password: str, team: str) -> None:
    """With a password of one's own, from the template; too many workers are refused beside their
    field.
    """
    signed_in(page, name, password)
    for label, text in (
        ("Present password", password),
        ("New password", NEW_PASSWORD),
        ("New password again", NEW_PASSWORD),
    ):
        hands.write(page.get_by_label(label, exact=True), text)
    hands.press(page.get_by_role("button", name="Change password"))
    expect(page.get_by_text("The password is changed.")).to_be_visible()
    page.goto("/workloads/new")
    for choice in ("Distributed", "PyTorch", f"train-{team}"):
        hands.choose(
            page.get_by_role("radio", name=choice, exact=choice in ("Distributed", "PyTorch"))
        )
    hands.write(page.get_by_label(re.compile("^Name")), "first")
    hands.press(page.get_by_role("button", name="CONTINUE"))
    workers = page.get_by_label("Number of workers")
    expect(workers).to_have_value("2")
    expect(page.get_by_role("checkbox", name=f"code-{team}")).to_be_checked()
    hands.write(workers, "5")
    hands.press(page.get_by_role("button", name="CONTINUE"))
    refusal = f"Workers must be at most 2 (policy rules-{team} of project {team})."
    expect(page.locator(".mu-error").filter(has_text=refusal)).to_be_visible()
    expect(workers).to_have_attribute("aria-invalid", "true")
    axe(page)
    hands.write(workers, "2")
    for button in ("CONTINUE", "CONTINUE", "CREATE TRAINING"):
        hands.press(page.get_by_role("button", name=button))
    expect(page.get_by_role("link", name="first", exact=True)).to_be_visible()


def signed_in(page: Page, name: str, password: str) -> Page:
    page.goto("/sign-in")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    return page


@pytest.mark.parametrize("hands", [Mouse, Keyboard])
def test_a_team_from_nothing(
    browser: Browser, site: Site, hands: type[Mouse] | type[Keyboard]
) -> None:
    team = f"detect-{hands.__name__.lower()}"
    with a_page(browser, site.url) as page:
        signed_in(page, "alice", PASSWORD).wait_for_url("**/workloads")
        password = sets_up(Administrator(page, hands(page), team))
    with a_page(browser, site.url) as page:
        launches(page, hands(page), f"lena-{team}", password, team)
