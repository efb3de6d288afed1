"""A provider on loopback, and somebody who signs on with it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.conf import LazySettings
from django.test import Client

from projects.models import User
from tests.oidc_provider import SECRET, Provider


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider, settings: LazySettings) -> Provider:
    """One that knows Carol, who is at the browser, and nothing of the test before."""
    running.__dict__ |= {
        "asks": False,
        "secret": SECRET,
        "auth_methods": {"client_secret_basic", "client_secret_post"},
        "refusal": {"error": "access_denied"},
        "broken": set(),
        "answers": {},
        "content_type": "application/json",
        "asked_paths": [],
        "queries": [],
    }
    running.change_document = running.change_claims = running.change_user_info = lambda _: None
    running.signed = running.sign
    running.people = {
        "carol-1": {
            "preferred_username": "carol",
            "email": "carol@example.com",
            "groups": ["ml-team", "everybody"],
        }
    }
    running.who = "carol-1"
    settings.OPTIONS = settings.OPTIONS.model_copy(update=running.options())
    return running


def begin(client: Client, wanted: str = "/projects") -> str:
    """Return the address at the provider that the console sends the browser to."""
    answer = client.post("/sign-on", {"next": wanted})
    assert answer.status_code == 200, answer.content
    url: str = answer.headers["Refresh"].partition("url=")[2]
    return url


def follow_provider(url: str) -> str:
    """Return the address that the provider sends the browser back to."""
    answer = requests.get(url, allow_redirects=False, timeout=10)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["Location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == "http://testserver/sign-on/callback"
    return f"{back.path}?{back.query}"


def sign_on(client: Client, wanted: str = "/projects") -> Any:
    return client.get(follow_provider(begin(client, wanted)))


def signed_in_as(client: Client) -> str:
    """Return the name of the session's user; "" for nobody."""
    user_id = client.session.get("_auth_user_id")
    return User.objects.get(pk=user_id).username if user_id else ""
