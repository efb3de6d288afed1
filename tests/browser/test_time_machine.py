"""The choice of a past moment in a browser: the slider, the field, and what is asked for."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import SignIn, Site

FORM = """
from datetime import UTC, datetime
from django.template.loader import render_to_string
from workloads.templatetags.time_machine import build_slider
begin, until = datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC)
at = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
choice = build_slider(at, begin, until, [])
print(render_to_string("time_machine/_choose.html", {"choice": choice, "id": "past"}))
"""


def test_the_hour_that_comes_twice_is_the_one_that_was_chosen(sign_in: SignIn, site: Site) -> None:
    """In Berlin it was half past two at 0:30 and at 1:30 UTC that night."""
    page = sign_in("bob")
    clock = page.context.new_cdp_session(page)
    clock.send("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    form = site.server.python(FORM)

    def show() -> None:
        page.goto("/projects")
        page.locator("main").evaluate("(main, form) => { main.innerHTML = form; }", form)
        page.add_script_tag(url="/static/js/time_machine.js")

    show()
    field = page.get_by_label("Moment in your time")
    expect(field).to_have_value("2026-10-25T02:30")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile(r"at=2026-10-25T01%3A30Z"))
    show()
    slider = page.get_by_role("slider")
    slider.press("ArrowRight")
    expect(field).to_have_value("2026-10-25T02:31")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile(r"at=2026-10-25T01%3A31Z"))
    show()
    field.fill("2026-10-25T04:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile(r"at=2026-10-25T03%3A00Z"))
