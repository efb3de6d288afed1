"""Two administrators edit one asset: the second is shown what changed meanwhile, and nothing is
lost unseen.
"""

import re
from typing import Any

import pytest
from django.test import Client

from environments.models import Environment
from projects.scopes import TENANT
from tests.cast import Cast
from tests.environments.assets import BY_NAME, ONE_OF_EACH, Sample, client_of

pytestmark = pytest.mark.django_db


def open_form(client: Client, address: str) -> dict[str, Any]:
    """A form as a browser has it once it is open."""
    page = client.get(address)
    data = page.context["form"].data
    return {name: data.getlist(name) for name in data} | {
        "started_from": page.context["started_from"]
    }


@pytest.mark.parametrize("sample", ONE_OF_EACH, ids=str)
def test_the_second_is_told_and_may_save_anyway(cast: Cast, sample: Sample) -> None:
    asset = sample.make(TENANT, cast.alice)
    address = f"/{sample.kind.path}/{asset.pk}/edit"
    first, second = client_of(cast.alice), client_of(cast.alice)
    one, two = open_form(first, address), open_form(second, address)
    assert first.post(address, one | {"description": "of the first"}).status_code == 302
    late = second.post(address, two | {"description": "of the second"})
    text = late.content.decode()
    assert late.status_code == 409
    assert re.search(r"Description</strong>: was\s+empty, is now <q>of the first</q>", text)
    assert "changed meanwhile by alice" in text
    assert 'value="of the second"' in text
    assert sample.kind.model.objects.get(pk=asset.pk).description == "of the first"
    again = two | {
        "description": "of the second",
        "started_from": late.context["started_from"],
        "anyway": "1",
    }
    assert second.post(address, again).status_code == 302
    now = sample.kind.model.objects.get(pk=asset.pk)
    assert (now.description, now.version) == ("of the second", 3)


@pytest.mark.parametrize("seal", ["", "nonsense", "a:b:c"])
def test_a_form_without_its_seal_saves_nothing_at_first(cast: Cast, seal: str) -> None:
    asset = BY_NAME["environment"].make(TENANT, cast.alice)
    client, address = client_of(cast.alice), f"/environments/{asset.pk}/edit"
    answer = client.post(
        address, open_form(client, address) | {"image": "other", "started_from": seal}
    )
    assert answer.status_code == 409
    assert "cannot be told field by field" in answer.content.decode()
    assert Environment.objects.get().version == 1


def test_a_form_that_is_wrong_still_starts_from_what_it_started_from(cast: Cast) -> None:
    asset = BY_NAME["environment"].make(TENANT, cast.alice)
    client, address = client_of(cast.alice), f"/environments/{asset.pk}/edit"
    mine, theirs = open_form(client, address), open_form(client, address)
    assert client.post(address, theirs | {"image": "team/theirs"}).status_code == 302
    wrong = client.post(address, mine | {"name": ""})
    assert wrong.status_code == 422
    assert (
        client.post(address, mine | {"started_from": wrong.context["started_from"]}).status_code
        == 409
    )


def test_choices_and_rows_are_told_in_words(cast: Cast) -> None:
    asset = BY_NAME["environment"].make(TENANT, cast.alice)
    client, address = client_of(cast.alice), f"/environments/{asset.pk}/edit"
    mine, theirs = open_form(client, address), open_form(client, address)
    changes = {"serves": "Standard:", "variables-0-value": "2", "pull_policy": "Always"}
    assert client.post(address, theirs | changes).status_code == 302
    text = re.sub(r"<[^>]+>", "", client.post(address, mine).content.decode())
    assert "Workload architecture: was Distributed, PyTorch, is now Standard" in text
    assert "Image pull policy: was The cluster&#x27;s default, is now Always" in text
    assert "Variables 1, value: was 1, is now 2" in text


def test_what_was_deleted_meanwhile_is_not_there(cast: Cast) -> None:
    asset = BY_NAME["environment"].make(TENANT, cast.alice)
    client, address = client_of(cast.alice), f"/environments/{asset.pk}/edit"
    mine = open_form(client, address)
    client.post(f"/environments/{asset.pk}/delete")
    assert client.post(address, mine).status_code == 404


def test_the_history_tells_it_in_the_past(cast: Cast) -> None:
    sample = ONE_OF_EACH[0]
    asset = sample.make(TENANT, cast.alice)
    alice, address = client_of(cast.alice), f"/{sample.kind.path}/{asset.pk}"
    data = open_form(alice, f"{address}/edit") | {"description": "of the second day"}
    assert alice.post(f"{address}/edit", data).status_code == 302
    assert "<li>Changed by alice, " in alice.get(address).content.decode()
