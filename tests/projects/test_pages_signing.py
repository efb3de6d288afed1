"""In, out, and one's own password."""

import re
from typing import Any

import pytest
from django.test import Client

from projects.models import User
from tests.cast import PASSWORD, Cast

NEW = "a whole new battery"
_TOKEN = re.compile(r'name="csrf[^>]*>')


def post_sign_in(client: Client, name: str, password: str, **more: str) -> Any:
    return client.post("/sign-in", {"username": name, "password": password} | more)


def change(client: Client, present: str = PASSWORD, new: str = NEW, again: str = NEW) -> Any:
    return client.post("/account", {"present": present, "new": new, "again": again})


def test_the_right_password_opens_the_page_one_wanted(client: Client, cast: Cast) -> None:
    assert client.get("/projects").headers["Location"] == "/sign-in?next=/projects"
    answer = post_sign_in(client, "bob", PASSWORD, next="/projects")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/projects")
    assert client.get("/projects").status_code == 200


@pytest.mark.parametrize(
    ("referer", "wanted"),
    [
        ("http://testserver/projects/1?q=a#b", "/projects/1%3Fq%3Da"),
        ("http://elsewhere.example/projects/1", "/projects/1/people"),
        ("", "/projects/1/people"),
    ],
)
def test_what_was_sent_without_a_session_leads_back_to_its_page_and_says_that_nothing_was_done(
    client: Client, cast: Cast, referer: str, wanted: str
) -> None:
    answer = client.post("/projects/1/people", {"name": "bob"}, headers={"Referer": referer})
    assert answer.headers["Location"] == f"/sign-in?next={wanted}"
    # A script follows first, and shows nothing of the page.
    client.get(answer.headers["Location"], headers={"HX-Request": "true"})
    page = client.get(answer.headers["Location"]).content.decode()
    assert "You were signed out, so nothing was done." in page


@pytest.mark.parametrize(
    "wanted", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"]
)
def test_nobody_is_sent_to_a_page_that_is_not_ours(client: Client, cast: Cast, wanted: str) -> None:
    assert "elsewhere" not in post_sign_in(client, "bob", PASSWORD, next=wanted).headers["Location"]


def test_a_wrong_password_and_an_unknown_name_are_told_in_the_same_words(
    client: Client, cast: Cast
) -> None:
    known, unknown = (post_sign_in(client, name, "wrong") for name in ("bob", "nobody"))
    assert known.status_code == unknown.status_code == 422
    pages = [
        _TOKEN.sub("", answer.content.decode()).replace(f'"{name}"', "")
        for answer, name in ((known, "bob"), (unknown, "nobody"))
    ]
    assert "The name or the password is not right" in pages[0]
    assert pages[0] == pages[1]


def test_guessing_is_slowed_down_and_says_so(client: Client, cast: Cast) -> None:
    answers = [post_sign_in(client, "bob", f"guess {number}") for number in range(11)]
    assert answers[-1].status_code == 429
    assert "too many failed attempts" in answers[-1].content.decode()


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_service": True}])
def test_who_is_deactivated_or_a_program_stays_out(
    client: Client, cast: Cast, change: dict[str, bool]
) -> None:
    User.objects.filter(pk=cast.bob.pk).update(**change)
    assert post_sign_in(client, "bob", PASSWORD).status_code == 422


def test_signing_out_ends_the_session_and_only_by_post(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    assert client.get("/sign-out").status_code == 405
    client.post("/sign-out")
    assert client.get("/projects").status_code == 302


def test_a_new_password_ends_the_sessions_elsewhere(client: Client, cast: Cast) -> None:
    elsewhere = Client()
    for each in (client, elsewhere):
        each.force_login(cast.bob)
    assert change(client).status_code == 302
    assert client.get("/projects").status_code == 200
    assert elsewhere.get("/projects").status_code == 302


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"present": "wrong"}, "This is not your present password"),
        ({"new": "short", "again": "short"}, "too short"),
        ({"new": "password1234", "again": "password1234"}, "too common"),
        ({"new": PASSWORD, "again": PASSWORD}, "This is your present password"),
        ({"again": "something else"}, "The two new passwords differ"),
    ],
)
def test_a_password_that_will_not_do_is_refused_beside_its_field(
    client: Client, cast: Cast, given: dict[str, str], problem: str
) -> None:
    client.force_login(cast.bob)
    answer = change(client, **given)
    assert answer.status_code == 422
    assert problem in answer.content.decode()
    assert User.objects.get(pk=cast.bob.pk).check_password(PASSWORD)


def test_a_temporary_password_opens_nothing_but_its_change(client: Client, cast: Cast) -> None:
    User.objects.filter(pk=cast.bob.pk).update(must_change_password=True)
    client.force_login(cast.bob)
    assert client.get("/projects").headers["Location"] == "/account"
    assert client.post(f"/projects/{cast.team_a.pk}/people").status_code == 403
    assert "Choose your own password" in client.get("/account").content.decode()
    change(client)
    assert client.get("/projects").status_code == 200
