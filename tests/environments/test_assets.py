"""The pages of environments and compute resources, and who may do what there."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from environments import builtin
from environments.models import Asset, ComputeResource, Environment
from environments.views import PAGE
from projects.models import User
from tests.cast import Cast

pytestmark = pytest.mark.django_db
PATHS = ("environments", "compute-resources")
MODELS: dict[str, type[Asset]] = {"environments": Environment, "compute-resources": ComputeResource}
GIVEN = {
    "environments": {"image": "team/x", "serves": "Distributed:PyTorch"},
    "compute-resources": {"gpu_devices": "1", "gpu_share": "whole"},
}


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def an_asset(path: str, cast: Cast, **more: object) -> Asset:
    extra = {"image": "x"} if path == "environments" else {}
    return MODELS[path].objects.create(**({"name": "theirs", "project": cast.team_a} | extra | more))


def test_what_is_built_in_is_made_once() -> None:
    assert builtin.ensure() == len(builtin.COMPUTE) + len(builtin.ENVIRONMENTS)
    assert builtin.ensure() == 0
    found = {each.name: (each.gpu_devices, each.gpu_portion) for each in ComputeResource.objects.all()}
    assert {name: (devices, str(portion)) for name, (devices, portion) in found.items()} == {
        "small-fraction": (1, "0.100"),
        "half-gpu": (1, "0.500"),
        "one-gpu": (1, "None"),
        "two-gpus": (2, "None"),
        "cpu-only": (0, "None"),
    }
    assert {(each.cpu_request, each.memory_request) for each in ComputeResource.objects.all()} == {("0.1", "100M")}


@pytest.mark.parametrize("path", PATHS)
def test_a_member_makes_changes_copies_and_deletes_one(cast: Cast, path: str) -> None:
    client = client_of(cast.bob)
    given = GIVEN[path] | {"name": "mine", "scope": str(cast.team_a.pk)}
    assert client.post(f"/{path}/new", given).status_code == 302
    made = MODELS[path].objects.get(name="mine")
    assert (made.project, made.created_by) == (cast.team_a, cast.bob)
    assert client.post(f"/{path}/{made.pk}/edit", given | {"description": "new words"}).status_code == 302
    assert "new words" in client.get(f"/{path}").content.decode()
    assert 'value="mine-copy"' in client.get(f"/{path}/{made.pk}/copy").content.decode()
    assert client.post(f"/{path}/{made.pk}/copy", given | {"name": "mine-copy"}).status_code == 302
    assert "Delete mine?" in client.get(f"/{path}/{made.pk}/delete").content.decode()
    assert client.post(f"/{path}/{made.pk}/delete").status_code == 302
    assert [each.name for each in MODELS[path].objects.all()] == ["mine-copy"]


@pytest.mark.parametrize("path", PATHS)
def test_an_asset_is_edited_as_it_is(cast: Cast, path: str) -> None:
    asset = an_asset(path, cast)
    values = {name: value for name, value in vars(asset).items() if name not in ("_state", "updated_at")}
    page = client_of(cast.bob).get(f"/{path}/{asset.pk}/edit")
    sent = {name: page.context["form"].data[name] for name in page.context["form"].data}
    assert client_of(cast.bob).post(f"/{path}/{asset.pk}/edit", sent).status_code == 302
    after = vars(MODELS[path].objects.get(pk=asset.pk))
    assert {name: after[name] for name in values} == values


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verb", ["edit", "copy", "delete"])
def test_another_teams_asset_is_not_there(cast: Cast, path: str, verb: str) -> None:
    address = f"/{path}/{an_asset(path, cast).pk}/{verb}"
    client = client_of(cast.mallory)
    assert client.get(address).status_code == client.post(address).status_code == 404
    assert "theirs" not in client.get(f"/{path}").content.decode()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verb", ["edit", "delete"])
def test_who_may_only_look_is_told_so(cast: Cast, path: str, verb: str) -> None:
    theirs, everybodys = an_asset(path, cast), an_asset(path, cast, name="common", project=None)
    assert client_of(cast.vera).post(f"/{path}/{theirs.pk}/{verb}").status_code == 403
    assert client_of(cast.bob).post(f"/{path}/{everybodys.pk}/{verb}").status_code == 403
    assert client_of(cast.vera).get(f"/{path}/new").status_code == 403
    assert MODELS[path].objects.count() == 2


@pytest.mark.parametrize("path", PATHS)
def test_everybodys_assets_are_the_administrators(cast: Cast, path: str) -> None:
    given = GIVEN[path] | {"name": "common", "scope": "everybody"}
    assert client_of(cast.bob).post(f"/{path}/new", given).status_code == 422
    assert client_of(cast.alice).post(f"/{path}/new", given).status_code == 302
    assert "common" in client_of(cast.mallory).get(f"/{path}").content.decode()


@pytest.mark.parametrize("path", PATHS)
def test_what_is_built_in_cannot_be_changed(cast: Cast, path: str) -> None:
    asset = an_asset(path, cast, project=None, is_built_in=True)
    assert client_of(cast.alice).post(f"/{path}/{asset.pk}/delete").status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_a_name_is_free_once_in_a_scope(cast: Cast, path: str) -> None:
    an_asset(path, cast)
    given = GIVEN[path] | {"name": "theirs", "scope": str(cast.team_a.pk)}
    answer = client_of(cast.bob).post(f"/{path}/new", given)
    assert answer.status_code == 422
    assert re.search(r'id="id_name_error">.*There is one called theirs', answer.content.decode())
    assert client_of(cast.mallory).post(f"/{path}/new", given | {"scope": str(cast.team_b.pk)}).status_code == 302


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"gpu_devices": "-1"}, "gpu_devices", "must be a whole number from 0"),
        ({"gpu_devices": "129"}, "gpu_devices", "from 0 to 128"),
        ({"gpu_share": "portion", "gpu_percent": "0.05"}, "gpu_percent", "above 0 and at most 100"),
        ({"gpu_share": "memory", "gpu_memory": "1GB"}, "gpu_memory", "without the B"),
        ({"cpu_request": "2", "cpu_limit": "1"}, "cpu_limit", "must not be below the request"),
        ({"memory_request": "lots"}, "memory_request", "must be a number with an optional unit"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(cast: Cast, changes: dict[str, str], field: str, words: str) -> None:
    given = GIVEN["compute-resources"] | {"name": "mine", "scope": str(cast.team_a.pk)}
    answer = client_of(cast.bob).post("/compute-resources/new", given | changes)
    assert answer.status_code == 422
    assert re.search(rf'id="id_{field}_error">.*{words}', answer.content.decode())


@pytest.mark.parametrize("path", PATHS)
def test_a_long_table_comes_in_pages_with_the_same_queries(cast: Cast, path: str) -> None:
    client = client_of(cast.bob)
    counts = []
    for number in range(2):
        for each in range(PAGE):
            an_asset(path, cast, name=f"asset-{number}-{each:03}", created_by=cast.bob)
        with CaptureQueriesContext(connection) as captured:
            text = client.get(f"/{path}").content.decode()
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert f"asset-0-{PAGE - 1:03}" in text
    assert "asset-1-000" not in text
    following = re.search(r'href="(\?[^"]+)">Next page', text)
    assert following is not None
    assert "asset-1-000" in client.get(f"/{path}{following[1].replace('&amp;', '&')}").content.decode()


@pytest.mark.parametrize("path", PATHS)
def test_the_table_is_searched(cast: Cast, path: str) -> None:
    an_asset(path, cast, name="alpha")
    an_asset(path, cast, name="beta", description="<b>bold</b>")
    text = client_of(cast.bob).get(f"/{path}?search=BOLD").content.decode()
    assert "beta" in text
    assert "alpha" not in text
    assert "&lt;b&gt;bold" in text
    assert "Nothing matches" in client_of(cast.bob).get(f"/{path}?search=nowhere").content.decode()
