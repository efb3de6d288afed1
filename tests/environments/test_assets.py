"""The pages of assets, the same for every kind: made, changed, copied, deleted, looked at; and who
may do what there.
"""

import re
from typing import Any

import pytest
from django.http import QueryDict

from environments import actions, builtin_assets
from environments.models import Asset, ComputeResource, Environment
from projects.models import AuditEntry
from projects.scopes import TENANT, project_scope
from tests.cast import Cast
from tests.environments.assets import ONE_OF_EACH, SAMPLES, SECRET, Sample, client_of

pytestmark = pytest.mark.django_db
EACH = pytest.mark.parametrize("sample", SAMPLES, ids=str)
EACH_KIND = pytest.mark.parametrize("sample", ONE_OF_EACH, ids=str)


def mallory(cast: Cast) -> Any:
    """She manages everything of team-b."""
    return client_of(cast.mallory)


def test_what_is_built_in_is_made_once(db: None) -> None:
    assert builtin_assets.ensure_builtin_assets() == len(builtin_assets.COMPUTE) + len(
        builtin_assets.ENVIRONMENTS
    )
    assert builtin_assets.ensure_builtin_assets() == 0
    found = {
        each.name: (each.gpu_devices, each.gpu_portion) for each in ComputeResource.objects.all()
    }
    assert {name: (devices, str(portion)) for name, (devices, portion) in found.items()} == {
        "small-fraction": (1, "0.100"),
        "half-gpu": (1, "0.500"),
        "one-gpu": (1, "None"),
        "two-gpus": (2, "None"),
        "cpu-only": (0, "None"),
    }
    assert {(each.cpu_request, each.memory_request) for each in ComputeResource.objects.all()} == {
        ("0.1", "100M")
    }


@EACH
def test_one_is_made_changed_copied_and_deleted(cast: Cast, sample: Sample) -> None:
    client, path, model = mallory(cast), f"/{sample.kind.path}", sample.kind.model
    given = sample.typed | {"name": "mine", "scope": f"project:{cast.team_b.pk}"}
    assert client.get(sample.new).status_code == 200
    assert client.post(sample.new, given).status_code == 302
    made = model.objects.get(name="mine")
    assert (made.project, made.created_by, made.version) == (cast.team_b, cast.mallory, 1)
    page = client.get(f"{path}/{made.pk}/edit").content.decode()
    started = re.search(r'name="started_from" value="([^"]+)"', page)
    assert started
    changed = given | {
        "description": "new words",
        "started_from": started[1],
        sample.change[0]: sample.change[1],
    }
    assert client.post(f"{path}/{made.pk}/edit", changed).status_code == 302
    made = model.objects.get(name="mine")
    assert (made.version, made.updated_by, made.description or sample.change[0]) == (
        2,
        cast.mallory,
        made.description,
    )
    assert "new words" in client.get(path).content.decode() or sample.change[0] == "description"
    details = client.get(f"{path}/{made.pk}").content.decode()
    assert "by mallory" in details
    assert sample.change[1] in details
    assert 'value="mine-copy"' in client.get(f"{path}/{made.pk}/copy").content.decode()
    assert client.post(f"{path}/{made.pk}/copy", given | {"name": "mine-copy"}).status_code == 302
    assert "Delete mine?" in client.get(f"{path}/{made.pk}/delete").content.decode()
    assert client.post(f"{path}/{made.pk}/delete").status_code == 302
    assert [each.name for each in model.objects.all()] == ["mine-copy"]
    events = AuditEntry.objects.filter(entity=sample.kind.key, entity_id=str(made.pk)).order_by(
        "pk"
    )
    assert [each.event for each in events] == ["create", "update", "delete"]
    assert sample.change[0] == "description" or events[1].before


@EACH
def test_an_asset_is_edited_as_it_is(cast: Cast, sample: Sample) -> None:
    asset = sample.make(project_scope(cast.team_b), cast.mallory)
    left_out = ("_state", "updated_at", "updated_by_id", "version", "secret")
    before = {
        name: value
        for name, value in vars(sample.kind.model.objects.get(pk=asset.pk)).items()
        if name not in left_out
    }
    client = mallory(cast)
    page = client.get(f"/{sample.kind.path}/{asset.pk}/edit")
    form: QueryDict = page.context["form"].data
    sent = {name: form.getlist(name) for name in form} | {
        "started_from": page.context["started_from"]
    }
    assert client.post(f"/{sample.kind.path}/{asset.pk}/edit", sent).status_code == 302
    after = sample.kind.model.objects.get(pk=asset.pk)
    assert {name: vars(after)[name] for name in before} == before
    assert getattr(after, "secret", "") == getattr(asset, "secret", "")
    # Nothing was changed, so no other editor has to load it again.
    assert after.version == 1


@EACH_KIND
def test_a_change_of_nothing_reads_what_somebody_else_saved(cast: Cast, sample: Sample) -> None:
    asset = sample.make(TENANT, cast.alice)
    stale = sample.kind.model.objects.get(pk=asset.pk)
    actions.change(asset, {"name": "other"}, scope=TENANT, user=cast.alice)
    actions.change(stale, {"name": "other"}, scope=TENANT, user=cast.alice)
    assert (stale.version, stale.updated_at) == (2, asset.updated_at)
    assert sample.kind.model.objects.get(pk=asset.pk).version == 2


@EACH_KIND
@pytest.mark.parametrize("verb", ["", "/edit", "/copy", "/delete"])
def test_another_teams_asset_is_not_there(cast: Cast, sample: Sample, verb: str) -> None:
    asset = sample.make(project_scope(cast.team_a), cast.alice, "theirs")
    address, client = f"/{sample.kind.path}/{asset.pk}{verb}", mallory(cast)
    assert client.get(address).status_code == 404
    assert client.post(address).status_code in (404, 405)
    assert "theirs" not in client.get(f"/{sample.kind.path}").content.decode()


@EACH_KIND
@pytest.mark.parametrize("verb", ["edit", "delete"])
def test_who_may_only_look_is_told_so(cast: Cast, sample: Sample, verb: str) -> None:
    theirs = sample.make(project_scope(cast.team_a), cast.alice, "theirs")
    everybodys = sample.make(TENANT, cast.alice, "common")
    vera, path = client_of(cast.vera), f"/{sample.kind.path}"
    assert vera.get(f"{path}/{theirs.pk}").status_code == 200
    assert vera.post(f"{path}/{theirs.pk}/{verb}").status_code == 403
    assert client_of(cast.bob).post(f"{path}/{everybodys.pk}/{verb}").status_code == 403
    assert vera.get(sample.new).status_code == 403
    assert sample.kind.model.objects.count() == 2


@EACH_KIND
def test_everybodys_assets_are_the_administrators(cast: Cast, sample: Sample) -> None:
    given = sample.typed | {"name": "common", "scope": "tenant"}
    assert mallory(cast).post(sample.new, given).status_code == 422
    assert client_of(cast.alice).post(sample.new, given).status_code == 302
    assert "common" in mallory(cast).get(f"/{sample.kind.path}").content.decode()


@pytest.mark.parametrize("path", ["environments", "compute-resources"])
def test_what_is_built_in_cannot_be_changed(cast: Cast, path: str) -> None:
    model: type[Asset] = Environment if path == "environments" else ComputeResource
    asset = model.objects.create(
        name="given", is_built_in=True, **({"image": "x"} if model is Environment else {})
    )
    client = client_of(cast.alice)
    assert client.post(f"/{path}/{asset.pk}/delete").status_code == 403
    assert "Built in" in client.get(f"/{path}").content.decode()
    assert "pencil" not in client.get(f"/{path}").content.decode()


@EACH_KIND
def test_a_name_is_free_once_in_a_scope(cast: Cast, sample: Sample) -> None:
    sample.make(project_scope(cast.team_b), cast.mallory, "taken")
    given = sample.typed | {"name": "taken", "scope": f"project:{cast.team_b.pk}"}
    answer = mallory(cast).post(sample.new, given)
    assert answer.status_code == 422
    assert re.search(r'id="id_name_error">.*There is one called taken', answer.content.decode())
    assert (
        client_of(cast.alice)
        .post(sample.new, given | {"scope": f"project:{cast.team_a.pk}"})
        .status_code
        == 302
    )


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
def test_what_is_wrong_stands_beside_its_field(
    cast: Cast, changes: dict[str, str], field: str, words: str
) -> None:
    given = {
        "gpu_devices": "1",
        "gpu_share": "whole",
        "name": "mine",
        "scope": f"project:{cast.team_a.pk}",
    }
    answer = client_of(cast.bob).post("/compute-resources/new", given | changes)
    assert answer.status_code == 422
    assert re.search(rf'id="id_{field}_error">.*{words}', answer.content.decode())


@EACH
def test_what_is_typed_is_shown_as_text(cast: Cast, sample: Sample) -> None:
    asset = sample.make(TENANT, cast.alice, "<b>bold</b>", description="<script>x</script>")
    client, path = mallory(cast), f"/{sample.kind.path}"
    pages = [path, f"{path}/{asset.pk}", f"{path}/{asset.pk}/copy"]
    for page in pages:
        text = client.get(page).content.decode()
        assert "&lt;b&gt;bold" in text
        assert "<b>bold" not in text
        assert "<script>x" not in text
    client_of(cast.alice).get(f"{path}/{asset.pk}/delete")


@EACH
def test_a_form_that_is_wrong_keeps_what_was_typed_but_no_secret(
    cast: Cast, sample: Sample
) -> None:
    given = sample.typed | {
        "name": "",
        "description": "kept words",
        "scope": f"project:{cast.team_b.pk}",
    }
    answer = mallory(cast).post(sample.new, given)
    assert answer.status_code == 422
    assert "kept words" in answer.content.decode()
    assert SECRET not in answer.content.decode()


def test_there_is_no_subtype_that_is_made_up(cast: Cast) -> None:
    client = mallory(cast)
    assert client.get("/data-sources/new/tape").status_code == 404
    assert client.get("/environments/new/git").status_code == 404
    assert "/data-sources/new/git" in client.get("/data-sources/new").content.decode()
