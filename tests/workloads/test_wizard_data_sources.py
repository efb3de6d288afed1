"""Data sources and credentials in the wizard: chosen, moved to another path, and made in place."""

import re
from typing import Any

import pytest

from environments.credentials import secret_name
from environments.models import Credential, DataSource
from projects.models import Project
from tests.cast import Cast
from tests.workloads.wizarding import Walk, key_of
from workloads.models import Workload
from workloads.specs import (
    S3,
    Git,
    GitAccess,
    Nfs,
    Variable,
    VariableSource,
    VolumeAccess,
    decode_spec,
)

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def images(project: Project | None, **changes: Any) -> DataSource:
    given = {
        "name": "images",
        "kind": "nfs",
        "origin": {"server": "nfs.example.com", "export": "/images"},
        "path": "/images",
    }
    return DataSource.objects.create(**(given | changes), project=project)


def token(project: Project, kind: str = "generic", name: str = "wandb") -> Credential:
    public = {
        "generic": {"keys": ["TOKEN"]},
        "password": {"username": "robot"},
        "access-key": {"access_key_id": "AK"},
    }.get(kind, {})
    return Credential.objects.create(
        name=name, kind=kind, public=public, secret='{"TOKEN": "s3cret"}', project=project
    )


def spec_of(walk: Walk) -> Any:
    while walk.step != "review":
        assert walk.page.status_code == 200, re.findall(r'_error">.*', walk.text)
        walk.send()
    walk.send()
    return decode_spec(Workload.objects.get().spec)


def test_a_chosen_data_source_becomes_a_volume_of_every_pod(cast: Cast) -> None:
    source = images(cast.team_a)
    spec = spec_of(Walk(cast).send_start().send_setup(data_sources=[str(source.pk)]))
    wanted = (
        Nfs(
            path="/images",
            server="nfs.example.com",
            export="/images",
            access=VolumeAccess.READ_ONLY,
        ),
    )
    assert spec.setup.volumes == wanted
    assert spec.master_setup.volumes == wanted


def test_its_path_can_be_another_for_this_workload(cast: Cast) -> None:
    source = images(cast.team_a)
    path = {f"source_path-{source.pk}": "/data/images"}
    spec = spec_of(Walk(cast).send_start().send_setup(data_sources=[str(source.pk)], **path))
    assert spec.setup.volumes[0].path == "/data/images"
    source.refresh_from_db()
    assert source.path == "/images"


def test_a_path_of_one_that_is_not_chosen_counts_for_nothing(cast: Cast) -> None:
    source = images(cast.team_a)
    assert (
        spec_of(
            Walk(cast).send_start().send_setup(**{f"source_path-{source.pk}": "nonsense"})
        ).setup.volumes
        == ()
    )


def test_a_wrong_path_is_said_beside_it(cast: Cast) -> None:
    source = images(cast.team_a)
    path = {f"source_path-{source.pk}": "data"}
    given = {
        "volumes__0__kind": "emptyDir",
        "volumes__0__path": "/tmp/x",
        "volumes__0__size": "1Gi",
    }
    walk = Walk(cast).send_start().send_setup(data_sources=[str(source.pk)], **path, **given)
    assert walk.page.status_code == 422
    assert re.search(rf'id="id_source_path-{source.pk}_error">.*must start with /', walk.text)


def test_two_at_one_path_are_refused(cast: Cast) -> None:
    one, other = images(cast.team_a), images(cast.team_a, name="more")
    walk = Walk(cast).send_start().send_setup(data_sources=[str(one.pk), str(other.pk)])
    assert walk.page.status_code == 422
    assert f"id_source_path-{other.pk}_error" in walk.text


def test_a_refresh_keeps_what_was_ticked_and_typed(cast: Cast) -> None:
    source = images(cast.team_a)
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(
            data_sources=[str(source.pk)], workers="many", **{f"source_path-{source.pk}": "/x <y>"}
        )
        .see("setup")
    )
    assert re.search(rf'value="{source.pk}"[^>]* checked', walk.text)
    assert 'value="/x &lt;y&gt;"' in walk.text


def test_only_those_for_use_in_the_project_are_offered(cast: Cast) -> None:
    images(cast.team_b, name="of-team-b")
    images(None, name="of-everybody")
    text = Walk(cast, "alice").send_start(project=str(cast.team_a.pk)).text
    assert "of-everybody" in text
    assert "of-team-b" not in text


def test_another_teams_data_source_cannot_be_chosen_by_its_id(cast: Cast) -> None:
    theirs = images(cast.team_b)
    walk = Walk(cast).send_start().send_setup(data_sources=[str(theirs.pk)])
    assert walk.page.status_code == 422
    assert "not for use here" in walk.text
    assert "nfs.example.com" not in walk.text


def test_git_and_s3_open_with_the_secrets_of_their_credentials(cast: Cast) -> None:
    robot, key = token(cast.team_a, "password", "robot"), token(cast.team_a, "access-key", "key")
    code = images(
        cast.team_a,
        name="code",
        kind="git",
        origin={"repository": "https://git.example.com/a/b.git"},
        path="/code",
        credential=robot,
    )
    bucket = images(
        cast.team_a,
        name="bucket",
        kind="s3",
        origin={"bucket": "images"},
        path="/bucket",
        credential=key,
    )
    spec = spec_of(Walk(cast).send_start().send_setup(data_sources=[str(code.pk), str(bucket.pk)]))
    found = {type(volume): volume for volume in spec.setup.volumes}
    assert (found[Git].secret, found[Git].credential) == (secret_name(robot), GitAccess.PASSWORD)
    assert found[S3].secret == secret_name(key)
    kinds = Workload.objects.get().assets.filter(kind="credential").values_list("name", flat=True)
    assert set(kinds) == {"robot", "key"}


def test_a_variable_comes_from_a_shared_secret(cast: Cast) -> None:
    credential = token(cast.team_a)
    row = {
        "source": "credential",
        "name": "WANDB",
        "credential": secret_name(credential),
        "key": "TOKEN",
    }
    spec = spec_of(
        Walk(cast)
        .send_start()
        .send_setup(**{f"variables-0-{name}": value for name, value in row.items()})
    )
    wanted = Variable(
        "WANDB", source=VariableSource.SECRET, object_name=secret_name(credential), key="TOKEN"
    )
    assert spec.setup.environment.variables == (wanted,)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"credential": ""}, "credential", "Choose the credential"),
        ({"credential": "muster-generic-000000000000"}, "credential", "not there any more"),
        ({"key": "PASSWORD"}, "key", "wandb has no such key. It has TOKEN."),
        ({"key": ""}, "key", "wandb has no such key"),
    ],
)
def test_a_shared_secret_that_cannot_be_is_refused_beside_its_field(
    cast: Cast, changes: dict[str, str], field: str, words: str
) -> None:
    credential = token(cast.team_a)
    row = {
        "source": "credential",
        "name": "WANDB",
        "credential": secret_name(credential),
        "key": "TOKEN",
    } | changes
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(**{f"variables-0-{name}": value for name, value in row.items()})
    )
    assert walk.page.status_code == 422
    assert re.search(rf'id="id_variables-0-{field}_error">.*{re.escape(words)}', walk.text)


def test_no_secret_is_in_the_page(cast: Cast) -> None:
    token(cast.team_a)
    text = Walk(cast).send_start().text
    assert "wandb (TOKEN)" in text
    assert "s3cret" not in text


def test_the_master_shows_the_shared_secret_that_it_inherits(cast: Cast) -> None:
    credential = token(cast.team_a)
    row = {
        "source": "credential",
        "name": "WANDB",
        "credential": secret_name(credential),
        "key": "TOKEN",
    }
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(**{f"variables-0-{name}": value for name, value in row.items()})
    )
    assert walk.step == "master"
    assert re.search(rf'<option value="{secret_name(credential)}" selected>', walk.text)


def test_the_type_of_a_new_data_source_is_chosen_first(cast: Cast) -> None:
    walk = Walk(cast).send_start().send(go="data-source", workers="7")
    assert walk.step == "data-source"
    assert "?type=nfs" in walk.text
    assert (
        "Container path"
        in walk.client.get(
            f"/workloads/new/{walk.page.request['PATH_INFO'].split('/')[3]}/assets/data-source?type=nfs"
        ).content.decode()
    )


def test_the_new_data_source_is_chosen_and_nothing_typed_is_lost(cast: Cast) -> None:
    before = images(cast.team_a, name="before")
    walk = (
        Walk(cast).send_start().send(go="data-source", workers="7", data_sources=[str(before.pk)])
    )
    address = f"{walk.page.request['PATH_INFO']}?type=nfs"
    given = {
        "name": "made",
        "server": "192.0.2.7",
        "export": "/made",
        "path": "/made",
        "scope": f"project:{cast.team_a.pk}",
    }
    walk.page = walk.client.post(address, given, follow=True)
    made = DataSource.objects.get(name="made")
    assert (made.project, made.created_by, made.kind) == (cast.team_a, cast.bob, "nfs")
    assert walk.step == "setup"
    assert walk.draft.data["setup"]["data_sources"] == [str(before.pk), str(made.pk)]
    assert 'value="7"' in walk.text


def test_in_place_only_the_cards_are_drawn_anew(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    at = f"/workloads/new/{walk.draft.pk}/assets/data-source"
    assert "hx-target" in walk.client.get(at, headers=HTMX).content.decode()
    given = {
        "name": "made",
        "server": "192.0.2.7",
        "export": "/made",
        "path": "/made",
        "scope": f"project:{cast.team_a.pk}",
    }
    answer = walk.client.post(f"{at}?type=nfs", given, headers=HTMX)
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#data-source-choice", "outerHTML")
    assert re.search(
        rf'value="{DataSource.objects.get().pk}"[^>]* checked', answer.content.decode()
    )
    assert walk.client.get(f"{at}?type=tape", headers=HTMX).status_code == 200
    assert walk.client.get(at.replace("data-source", "credential")).status_code == 404


def test_names_are_shown_as_text(cast: Cast) -> None:
    images(cast.team_a, name="<b>images", description="<script>alert(1)</script>")
    text = Walk(cast).send_start().text
    assert "&lt;b&gt;images" in text
    assert "<script>alert" not in text
    assert key_of("allreduce") in text
