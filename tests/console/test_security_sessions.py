"""Sessions: nobody plants one, ends with one, or reads one from a script."""

from django.conf import settings
from django.test import Client

from tests.cast import PASSWORD, Cast


def test_a_session_that_was_planted_is_not_the_one_that_is_signed_in(cast: Cast) -> None:
    client = Client()
    client.get("/sign-in")
    session = client.session
    session["planted"] = "by mallory"
    session.save()
    planted = str(session.session_key)
    client.cookies[settings.SESSION_COOKIE_NAME] = planted
    client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != planted
    other = Client()
    other.cookies[settings.SESSION_COOKIE_NAME] = planted
    assert other.get("/projects").status_code == 302


def test_signing_out_ends_the_session_itself(cast: Cast) -> None:
    client, thief = Client(), Client()
    client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    thief.cookies[settings.SESSION_COOKIE_NAME] = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert thief.get("/projects").status_code == 200
    client.post("/sign-out")
    assert thief.get("/projects").status_code == 302


def test_the_cookies_of_a_session_are_out_of_reach_of_scripts_and_other_sites(cast: Cast) -> None:
    client = Client()
    client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
