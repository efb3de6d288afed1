"""No oracle: the answer for what is another team's is, to the letter, the answer for what does not
exist, on every address and method.
"""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from environments.models import ComputeResource, Environment
from tests.cast import a_spec
from tests.console.address_world import World, build_form, build_submission, module_world, world
from tests.console.addresses import ASYNC, EVERY, METHODS, STREAMS, THEIRS
from workloads import journal

__all__ = ["module_world", "world"]

_FORGERY = re.compile(r'(name="csrf[^>]*|csrf-token"[^>]*|csrfmiddlewaretoken[^>]*)>|[0-9a-f]{32}')
"""What differs from answer to answer by chance."""
_MADE_UP = {
    int: 987_654_321,
    uuid.UUID: uuid.UUID("00000000-dead-4bad-8bad-00000000dead"),
    str: "no-such-thing",
}


def made_up(value: Any) -> Any:
    return next(
        (other for kind, other in _MADE_UP.items() if isinstance(value, kind)), "no-such-thing"
    )


def send_request(
    world: World, method: str, name: str, arguments: dict[str, Any]
) -> tuple[int, str]:
    """Status and body, without what is in the address itself."""
    url = reverse(name, kwargs=arguments)
    more: dict[str, Any] = {}
    if url.startswith("/api/") and method in ("post", "put", "patch"):
        more = {"data": build_submission(world), "content_type": "application/json"}
    elif method == "post":
        more = {"data": build_form(world)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(World, "url", lambda self, name: url)
        status, body = world.ask(
            world.cast.mallory, method, name, **({} if name in ASYNC else more)
        )
    body = body.replace(url, "URL")
    # Small numbers are in every page.
    for value in (text for text in map(str, arguments.values()) if len(text) > 6):
        body = body.replace(value, "ID")
    return status, _FORGERY.sub("", body)


@pytest.mark.parametrize("name", sorted(set(THEIRS) - STREAMS))
def test_what_is_anothers_reads_like_what_is_not_there(world: World, name: str) -> None:
    address = EVERY[name]
    real = {each: world.argument(address, each) for each in address.arguments}
    for method in METHODS:
        expected = send_request(world, method, name, real)
        for changed in real:
            # Words of the program, as the name of a tab, are no ids.
            if changed in ("tab", "step", "kind", "subtype"):
                continue
            other = real | {changed: made_up(real[changed])}
            assert send_request(world, method, name, other) == expected, (
                f"{method} {name} with another {changed}"
            )


@pytest.mark.parametrize(
    "path",
    [
        "/workloads",
        "/projects",
        "/clusters",
        "/environments",
        "/compute-resources",
        "/api/v1/workloads",
    ],
)
def test_lists_leak_no_count(world: World, path: str) -> None:
    """Nothing on a list changes for somebody when another team's rows come and go."""

    def load_page() -> str:
        if path.startswith("/api/"):
            token = world.tokens[world.cast.mallory.pk]
            return Client().get(path, headers={"authorization": f"Bearer {token}"}).content.decode()
        client = Client()
        client.force_login(world.cast.mallory)
        return _FORGERY.sub("", client.get(path).content.decode())

    before = load_page()
    journal.create_workload(
        a_spec(world.cast.team_a, "one-more"), project=world.cast.team_a, user=world.cast.bob
    )
    for model, more in ((Environment, {"image": "x"}), (ComputeResource, {})):
        model.objects.create(name="one-more", project=world.cast.team_a, **more)
    assert _without_positions(load_page()) == _without_positions(before)


def _without_positions(text: str) -> str:
    """Without the journal's position, which is everybody's and tells that something happened
    somewhere, not what.
    """
    return re.sub(
        r"after=[0-9]+|data-position=\"[0-9]+\"|[0-9]+ (s|min) ago|just now|datetime=\"[^\"]*\"",
        "",
        text,
    )
