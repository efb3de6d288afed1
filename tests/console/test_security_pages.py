"""Stored scripts, headers, redirects: on every address there is, found in the URL table."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.http import HttpResponse
from django.urls import NoReverseMatch

from console.security import CONTENT_SECURITY_POLICY
from tests.console import hostile_rows
from tests.console.address_world import World, build_form, module_world, world
from tests.console.addresses import ASYNC, EVERY, OPEN, STREAMS
from tests.console.fast_browser import BROWSER, Browser

__all__ = ["module_world", "world"]

PAGES = sorted(name for name in set(EVERY) - ASYNC - STREAMS if not name.startswith("api-"))
ELSEWHERE = (
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
)
WAYS_BACK = (
    "next",
    "back",
    "return",
    "return_to",
    "redirect",
    "redirect_to",
    "url",
    "to",
    "continue",
    "from",
    "success_url",
    "process",
)


class Markup(HTMLParser):
    """What a browser would take for markup that runs: `wrong` names it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.wrong += [
            f"<{tag} {name}>" for name in given if name.startswith("on") or name == "style"
        ]
        runs = tag == "script" and not given.get("src") and given.get("type") != "application/json"
        if runs or tag in ("style", "mk", "iframe", "object", "embed", "base"):
            self.wrong.append(f"<{tag}>")
        self.wrong += [
            f"<{tag} {name}={value}>"
            for name, value in attrs
            if (value or "").strip().lower().startswith("javascript:")
        ]


def list_answers(world: World, client: Browser) -> Iterator[tuple[str, HttpResponse]]:
    """Every page and every part of one, as an administrator gets it."""
    for name in PAGES:
        try:
            url = world.url(name)
        except NoReverseMatch:
            # The text of an address cannot be in one: then nobody comes there.
            continue
        searched = f"?q={hostile_rows.SHORT}&search=%22%3E%3Cmk%3E&sort=%3Cmk%3E&cursor=%3Cmk%3E"
        for query, headers in (("", {}), (searched, {}), ("?pane=1", {"HX-Request": "true"})):
            answer: Any = client.get(url + query, headers=headers)
            yield f"{name}{query} {headers}", answer


@pytest.mark.timeout(1200)
def test_no_text_of_any_row_is_markup_on_any_page(world: World) -> None:
    left = hostile_rows.create_rows_of_every_model()
    assert hostile_rows.fill_hostile_texts() > 60
    for row in (world.workload, world.standard, world.pod, world.node):
        row.refresh_from_db()
    client, wrong, page_count = BROWSER.sign_in_as(world, world.cast.alice), [], 0
    for where, answer in list_answers(world, client):
        if answer.streaming or not answer.get("Content-Type", "").startswith("text/html"):
            continue
        text = answer.content.decode()
        wrong += [f"{where}: {mark}" for mark in hostile_rows.ESCAPED if mark in text]
        # The policy forbids scripts and styles inside a page: one that needs them would not work.
        wrong += [f"{where}: {each}" for each in Markup(text).wrong]
        wrong += [f"{where}: {answer.status_code}"] if answer.status_code >= 500 else []
        page_count += html.escape(hostile_rows.SHORT[:9]) in text
    assert not wrong, "\n".join(wrong[:40])
    assert page_count > 40, f"the text was on few pages only; {left} could not be made"


@pytest.mark.sweep
@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_the_headers_that_keep_it_safe(world: World, name: str) -> None:
    client, url = BROWSER.sign_in_as(world, world.cast.alice), world.url(name)
    for method in ("get", "post"):
        if name in OPEN:
            client.cookies.clear()
        answer = getattr(client, method)(url)
        assert answer.status_code != 500
        assert answer["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["X-Frame-Options"] == "DENY"
        assert "no-store" in answer["Cache-Control"]
        assert answer["X-Request-ID"]


@pytest.mark.sweep
@pytest.mark.parametrize("name", PAGES)
def test_nothing_sends_a_browser_elsewhere(world: World, name: str) -> None:
    client, url = BROWSER.sign_in_as(world, world.cast.alice), world.url(name)
    for wanted in ELSEWHERE:
        ways = dict.fromkeys(WAYS_BACK, wanted)
        of_htmx = {"HX-Request": "true", "HX-Current-URL": wanted} if wanted == ELSEWHERE[0] else {}
        answers: list[Any] = [
            client.get(url, ways, headers={"Referer": wanted}),
            client.post(url, build_form(world) | ways, headers=of_htmx),
        ]
        for answer in answers:
            for header in (
                "Location",
                "HX-Redirect",
                "HX-Location",
                "HX-Push-Url",
                "HX-Replace-Url",
            ):
                goes = answer.headers.get(header, "")
                assert goes == "" or re.match(r"[/?](?![/\\\t])", goes), f"{header}: {goes}"
            if not answer.streaming and answer.get("Content-Type", "").startswith("text/html"):
                assert not re.search(
                    r"""(href|action|src|hx-[a-z-]+|data-[a-z-]+)=["'](https?:)?//evil""",
                    answer.content.decode(),
                )
                assert 'href="javascript:' not in answer.content.decode()


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(set(EVERY) - ASYNC - STREAMS - OPEN))
def test_reading_changes_nothing(world: World, name: str) -> None:
    before, url = world.state(), world.url(name)
    for method in ("get", "head", "options"):
        BROWSER.ask(world, world.cast.alice, method, url)
    assert world.state() == before
