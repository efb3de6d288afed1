"""The frame in a real browser: signing in, menus, themes, dialogs, with the keyboard."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits
from tests.cast import PASSWORD

DARK = re.compile(r"\bpf-v6-theme-dark\b")


def test_one_signs_in_and_out_with_the_keyboard_alone(page: Page, site: Site) -> None:
    page.goto("/sign-in?next=/projects")
    page.keyboard.type("vera")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    page.get_by_role("button", name="vera").focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Sign out")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sign in to Muster")).to_be_visible()


def test_a_wrong_password_is_told_and_the_name_is_kept(page: Page, site: Site) -> None:
    page.goto("/sign-in")
    page.get_by_label("User name").fill("bob")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The name or the password is not right")
    expect(page.get_by_label("User name")).to_have_value("bob")


def test_a_time_by_the_clock_names_its_year_unless_it_is_this_one(page: Page, site: Site) -> None:
    page.goto("/sign-in")
    words = page.evaluate("""() => {
        const place = document.createElement("p");
        for (const year of [2020, new Date().getFullYear()]) {
            const time = document.createElement("time");
            time.dateTime = new Date(year, 5, 7, 12, 30).toISOString();
            time.dataset.at = "";
            place.append(time);
        }
        window.muster.freshen(place);
        return [...place.children].map((each) => each.textContent);
    }""")
    assert words == ["7 Jun 2020, 12:30", "7 Jun, 12:30"]


def test_the_first_tab_leads_past_the_navigation(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_a_menu_is_walked_with_the_arrow_keys_and_gives_the_focus_back(sign_in: SignIn) -> None:
    page = sign_in("alice")
    button = page.get_by_role("button", name="alice")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Account")).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "true")
    for key, name in (
        ("ArrowDown", "As the system"),
        ("End", "Sign out"),
        ("Home", "Account"),
        ("d", "Dark"),
    ):
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_contain_text(name)
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")


def test_the_navigation_of_an_administrator_fits_a_laptop(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate("nav.scrollHeight - nav.clientHeight") <= 0


def test_on_a_low_screen_the_navigation_shows_where_one_is(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 1280, "height": 480})
    page.goto("/settings")
    expect(page.get_by_role("link", name="Settings", exact=True)).to_be_in_viewport(ratio=1)
    page.goto("/projects")
    expect(page.get_by_role("link", name="Projects", exact=True)).to_be_in_viewport(ratio=1)


def test_whose_row_it_is_and_what_can_be_done_stay_in_sight(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 601, "height": 800})
    page.goto("/users")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="bob"))
    expect(row.get_by_role("button")).to_be_in_viewport(ratio=1)
    page.get_by_role("region", name="Users").evaluate(
        "each => { each.scrollLeft = each.scrollWidth }"
    )
    expect(row.get_by_role("rowheader")).to_be_in_viewport(ratio=1)


def test_on_a_phone_a_search_is_as_wide_as_the_page(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/audit")
    box = page.get_by_placeholder("Search by subject, name or id").bounding_box()
    assert box is not None
    assert box["width"] > 280


def test_a_theme_is_chosen_kept_and_there_from_the_first_paint(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.get_by_role("button", name="alice").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    expect(page.locator("html")).to_have_class(DARK)
    page.add_init_script(
        "document.addEventListener('readystatechange', () => { window.first ??= "
        "document.documentElement.className })"
    )
    page.reload()
    assert DARK.search(page.evaluate("window.first"))
    page.get_by_role("button", name="alice").click()
    expect(page.get_by_role("menuitemradio", name="Dark")).to_have_attribute("aria-checked", "true")
    page.get_by_role("menuitemradio", name="As the system").click()
    expect(page.locator("html")).not_to_have_class(DARK)


def test_without_a_choice_the_page_follows_the_system(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_class(DARK)
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).not_to_have_class(DARK)


def test_what_is_chosen_has_the_colour_of_the_console(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/clusters/new")
    chosen = page.get_by_label("Paste a kubeconfig")
    accent, colour = chosen.evaluate(
        """radio => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.color = "var(--mu-accent)";
          return [getComputedStyle(radio).accentColor, getComputedStyle(probe).color];
        }"""
    )
    assert accent == colour


def test_the_code_of_a_program_is_asked_within_its_card(sign_in: SignIn) -> None:
    page = sign_in("alice", at="/sign-in/program")
    x = "element => element.getBoundingClientRect().x"
    width = "element => element.getBoundingClientRect().width"
    field, button = page.get_by_label("The code"), page.get_by_role("button", name="Go on")
    assert field.evaluate(x) - page.locator(".mu-card").evaluate(x) >= 16
    assert button.evaluate(width) < field.evaluate(width) / 2


def test_a_dialog_takes_the_focus_and_gives_it_back(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    opener = page.get_by_role("link", name="New user")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="New user")
    expect(dialog.get_by_role("heading", name="New user")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_a_form_in_a_dialog_comes_back_with_its_errors_and_then_shows_the_secret(
    sign_in: SignIn, site: Site
) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("User name").fill("bob")
    dialog.get_by_role("button", name="Create user").click()
    expect(dialog).to_contain_text("There is a user of this name already")
    dialog.get_by_label("User name").fill("carla")
    dialog.get_by_role("button", name="Create user").click()
    dialog.get_by_role("button", name="Copy temporary password").click()
    expect(page.locator("#toasts").get_by_text("Copied.")).to_be_visible()
    assert (
        page.evaluate("navigator.clipboard.readText()")
        == dialog.locator("#secret-password").text_content()
    )
    dialog.get_by_role("link", name="Done").click()
    expect(page.get_by_role("row", name=re.compile("carla"))).to_contain_text("Temporary password")


def test_what_cannot_be_undone_is_asked_first(sign_in: SignIn, site: Site) -> None:
    page = sign_in("alice", f"/projects/{site.team_b}")
    remove = page.get_by_role("button", name="Remove mallory")
    remove.click()
    question = page.get_by_role("alertdialog", name="Remove mallory?")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question).to_be_hidden()
    expect(remove).to_be_focused()
    remove.click()
    question.get_by_role("button", name="Remove").click()
    expect(page.locator("#toasts")).to_contain_text("mallory has no role in team-b any more")
    expect(remove).to_have_count(0)


def test_on_a_small_screen_the_navigation_opens_and_closes(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 360, "height": 800})
    clusters = page.get_by_role("link", name="Clusters")
    expect(clusters).to_be_hidden()
    page.get_by_role("button", name="Navigation").click()
    expect(clusters).to_be_visible()
    page.keyboard.press("Escape")
    expect(clusters).to_be_hidden()
    expect(page.get_by_role("button", name="Navigation")).to_be_focused()


def test_times_stay_fresh_by_themselves(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.evaluate(
        "document.querySelector('time[data-when]').dateTime = new Date(Date.now() - "
        "7260000).toISOString(); muster.freshen()"
    )
    expect(page.locator("time[data-when]").first).to_have_text("2 h ago")
    assert page.locator("time[data-when]").first.get_attribute("title")


def test_the_drawer_opens_beside_the_page_and_gives_the_focus_back(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.evaluate(
        "const link = document.getElementById('new-project'); link.dataset.drawer = "
        "'/users/new'; delete link.dataset.dialog"
    )
    opener = page.get_by_role("link", name="New project")
    opener.click()
    drawer = page.get_by_role("dialog", name="Details")
    expect(drawer.get_by_role("heading", name="New user")).to_be_focused()
    expect(page.get_by_role("link", name="Clusters")).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()


def test_the_drawer_that_covers_the_page_keeps_the_focus_inside(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.set_viewport_size({"width": 360, "height": 800})
    page.evaluate(
        "const link = document.getElementById('new-project'); link.dataset.drawer = "
        "'/users/new'; delete link.dataset.dialog"
    )
    opener = page.get_by_role("link", name="New project")
    opener.click()
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", name="New user")).to_be_focused()
    for key in ("Tab", "Shift+Tab"):
        for _ in range(15):
            page.keyboard.press(key)
            assert page.evaluate(
                "document.activeElement === document.body"
                " || !!document.activeElement.closest('#drawer')"
            )
    axe(page)
    # A message stands in front of it, and goes back to the page with it.
    page.evaluate("muster.toast('Look here')")
    drawer.get_by_role("button", name="Dismiss").click()
    # Where there is room beside it, the page can be used; what is typed stays when that changes.
    name = drawer.get_by_label("User name")
    name.fill("half-typed")
    for width, is_modal in ((1280, False), (360, True)):
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator("#drawer:modal")).to_have_count(int(is_modal))
        expect(name).to_be_focused()
        expect(name).to_have_value("half-typed")
    # What stands in front of it stays there meanwhile, and the drawer fits once that is closed.
    question = page.get_by_role("alertdialog", name="Throw away what you typed?")
    for width, is_modal in ((1280, False), (360, True)):
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator("#drawer:modal")).to_have_count(int(not is_modal))
        question.get_by_role("button", name="Keep it").click()
        expect(question).to_be_hidden()
        expect(page.locator("#drawer:modal")).to_have_count(int(is_modal))
        expect(name).to_be_focused()
        expect(name).to_have_value("half-typed")
    name.fill("")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()
    expect(page.locator("body > #toasts")).to_have_count(1)


def test_equal_toasts_are_one_that_counts(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    for _ in range(5):
        page.evaluate("muster.toast('It is there.', 'error')")
    page.evaluate("muster.toast('It is there.', 'success')")
    toasts = page.locator(".mu-toast")
    expect(toasts).to_have_count(2)
    expect(toasts.first).to_contain_text("5 times")
    axe(page)
    toasts.first.get_by_role("button", name="Dismiss").click()
    page.evaluate("muster.toast('It is there.', 'error')")
    expect(toasts).to_have_count(2)
    expect(toasts.last.locator(".mu-toast__count")).to_be_empty()


def test_what_is_refused_is_told_where_one_looks(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.evaluate("htmx.ajax('POST', '/users/999999/reset', {swap: 'none'})")
    expect(page.locator("#toasts")).to_contain_text("The address is wrong, what it showed is gone")
    page.get_by_role("link", name="New user").click()
    expect(page.locator("#dialog")).to_be_visible()
    page.evaluate("htmx.ajax('POST', '/users/999999/reset', {swap: 'none'})")
    expect(page.locator("#dialog").get_by_role("alert")).to_contain_text("The address is wrong")


def test_a_lost_session_leads_to_the_sign_in_page(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.context.clear_cookies()
    page.get_by_role("link", name="New user").click()
    expect(page.get_by_role("heading", name="Sign in to Muster")).to_be_visible()


def test_a_toast_is_seen_in_front_of_an_open_dialog(sign_in: SignIn) -> None:
    page = sign_in("alice", "/users")
    page.get_by_role("link", name="New user").click()
    expect(page.locator("#dialog")).to_be_visible()
    page.evaluate("muster.toast('Look here', 'error')")
    page.get_by_role("button", name="Dismiss").click()
    page.keyboard.press("Escape")
    page.evaluate("muster.toast('And here')")
    expect(page.locator("body > #toasts")).to_contain_text("And here")


def test_axe_and_the_width_check_see_what_is_wrong(sign_in: SignIn) -> None:
    page = sign_in("alice")
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    with pytest.raises(AssertionError, match="image-alt"):
        axe(page)
    page.evaluate("document.querySelector('main').style.width = '3000px'")
    with pytest.raises(AssertionError, match="too wide at 360 px"):
        fits(page)
