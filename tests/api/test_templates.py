"""Templates over REST as clients of Run:ai's API have them: below an architecture, with scopeType
and master, changed by PUT and PATCH.
"""

from typing import Any

import pytest

from environments.credentials import secret_name
from environments.models import Credential, DataSource, Environment, Template
from projects.models import AccessRule, CustomRole
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.templated import save_template

SPEC = {
    "image": "team/mine:1",
    "distributedFramework": "PyTorch",
    "numWorkers": 3,
    "compute": {"gpuDevicesRequest": 1},
}
AT = "/workload-templates"


def create_template(cast: Cast, **more: Any) -> dict[str, Any]:
    meta = {
        "name": "mine",
        "description": "words",
        "scopeType": "project",
        "scopeId": str(cast.team_a.pk),
    }
    answer: dict[str, Any] = Caller(cast.bob)(
        "POST", f"{AT}/distributed", {"meta": meta, "spec": SPEC, "locked": ["image"]} | more, 202
    )
    return answer


def test_it_has_its_scope_in_their_words_and_in_ours(cast: Cast) -> None:
    meta = create_template(cast)["meta"]
    assert (meta["scopeType"], meta["scopeId"], meta["scope"], meta["projectId"]) == (
        "project",
        str(cast.team_a.pk),
        "project",
        cast.team_a.pk,
    )


def test_it_is_there_below_its_architecture_only(cast: Cast) -> None:
    bob, key = Caller(cast.bob), create_template(cast)["meta"]["id"]
    assert bob("GET", f"{AT}/distributed/{key}") == bob("GET", f"{AT}/{key}")
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        bob(method, f"{AT}/trainings/{key}", {}, 404)
    assert [
        len(bob("GET", f"{AT}{end}")["entries"]) for end in ("", "/distributed", "/trainings")
    ] == [1, 1, 0]
    assert bob("GET", f"{AT}/count?search=WORDS") == {"count": 1}
    standard = {
        "meta": {"name": "one", "scope": "project", "projectId": cast.team_a.pk},
        "spec": {"image": "x"},
    }
    assert bob("POST", f"{AT}/trainings", standard, 202)["meta"]["workloadType"] == "Training"
    bob("POST", f"{AT}/trainings", standard | {"spec": SPEC}, 400)


def test_put_writes_it_anew_and_what_was_answered_means_the_same(cast: Cast) -> None:
    bob, answer = (
        Caller(cast.bob),
        create_template(
            cast, master={"spec": {"image": "team/master:1"}}, masterSpecSameAsWorker=False
        ),
    )
    assert answer["masterSpec"]["image"] == answer["master"]["spec"]["image"] == "team/master:1"
    at = f"{AT}/{answer['meta']['id']}"
    again = bob("PUT", at, answer, 202)
    # Nothing was changed, so the version is the same.
    assert again == answer
    # Twice the same is once the same.
    bare = {"spec": {"image": "x", "distributedFramework": "JAX", "numWorkers": 1}}
    first, second = bob("PUT", at, bare, 202), bob("PUT", at, bare, 202)
    assert first == second
    assert (
        first["meta"]["name"],
        first["meta"]["description"],
        first["locked"],
        first["distributedFramework"],
    ) == (
        "mine",
        None,
        [],
        "JAX",
    )
    assert "numWorkers" in str(first["spec"])


def test_patch_changes_what_it_names(cast: Cast) -> None:
    bob, answer = Caller(cast.bob), create_template(cast)
    at = f"{AT}/distributed/{answer['meta']['id']}"
    assert bob("PATCH", at, {"meta": {"description": "other"}}, 202)["spec"] == answer["spec"]
    changed = bob("PATCH", at, {"spec": {"numWorkers": 5, "compute": {"cpuCoreRequest": 2}}}, 202)
    assert changed["spec"]["compute"] == answer["spec"]["compute"] | {"cpuCoreRequest": 2}
    assert (changed["spec"]["numWorkers"], changed["spec"]["image"], changed["locked"]) == (
        5,
        "team/mine:1",
        ["image"],
    )
    assert "compute" not in bob("PATCH", at, {"spec": {"compute": None}}, 202)["spec"]
    late = bob("PATCH", at, {"meta": {"version": 1, "description": "late"}}, 409)
    assert "bob changed" in late["message"]
    bob("DELETE", f"{at}?version=1", status=409)
    bob("DELETE", at, status=202)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"spec": {"image": ""}}, "spec.image"),
        ({"spec": {"numWorkers": "x"}}, "spec.numWorkers"),
        ({"spec": [], "meta": {}}, "spec"),
        ({"meta": {"name": "x" * 64}}, "meta.name"),
        ({"meta": {"scopeType": "moon"}}, "meta.scopeType"),
        ({"meta": {"scopeType": "project", "scopeId": "x"}}, "meta.projectId"),
        ({"meta": {"createdBy": 1, "isBuiltIn": True}}, "meta.isBuiltIn"),
        ({"master": {"assets": {"environment": "x"}}}, "master.assets"),
        ({"master": []}, "master"),
        ({"master": {"spec": {"image": "a"}}, "masterSpec": {"image": "b"}}, "master"),
        ({"fieldsToClear": ["x"]}, "fieldsToClear"),
    ],
)
def test_what_is_wrong_is_named(cast: Cast, body: dict[str, Any], field: str) -> None:
    answer = Caller(cast.bob)("PATCH", f"{AT}/{create_template(cast)['meta']['id']}", body, 400)
    assert field in [each["field"] for each in answer["details"]], answer
    assert Template.objects.get().version == 1


def test_nobody_moves_one_where_they_may_make_none(cast: Cast) -> None:
    answer = create_template(cast)
    at = f"{AT}/{answer['meta']['id']}"
    for meta in (
        {"scope": "tenant"},
        {"scopeType": "project", "scopeId": str(cast.team_b.pk)},
        {"scopeType": "department", "scopeId": "1"},
    ):
        Caller(cast.bob)("PATCH", at, {"meta": meta}, 400)
    for who, status in ((cast.vera, 403), (cast.mallory, 404)):
        Caller(who)("PUT", at, answer, status)
        Caller(who)("PATCH", at, {"meta": {"name": "taken"}}, status)
    assert Template.objects.get().name == "mine"


def test_fields_are_cleared_by_their_paths(cast: Cast) -> None:
    master = {"masterSpec": {"image": "b", "command": "x"}}
    spec = SPEC | {"compute": {"gpuDevicesRequest": 1, "cpuCoreRequest": 2}, "workingDir": "/w"}
    made = create_template(cast, spec=spec, **master)
    bob, at = Caller(cast.bob), f"{AT}/{made['meta']['id']}"
    # Clients that send no null say so by the path; a path without a value changes nothing.
    cleared = ["spec.compute.cpuCoreRequest", "spec.args", "master.spec.command"]
    template = bob("PATCH", at, {"fieldsToClear": cleared}, 202)
    assert "cpuCoreRequest" not in template["spec"]["compute"]
    assert template["spec"]["compute"]["gpuDevicesRequest"] == 1
    assert (template["masterSpec"]["image"], "command" in template["masterSpec"]) == ("b", False)
    assert (template["meta"]["description"], template["locked"]) == ("words", ["image"])
    template = bob(
        "PATCH", at, {"fieldsToClear": ["masterSpec", "meta.description", "locked"]}, 202
    )
    assert (template["meta"]["description"], template["locked"]) == (None, [])
    assert "masterSpec" not in template
    # What is given beside it is what there is then.
    both = {"fieldsToClear": ["spec.workingDir"], "spec": {"workingDir": "/v"}}
    assert bob("PATCH", at, both, 202)["spec"]["workingDir"] == "/v"


@pytest.mark.parametrize(
    "paths",
    [
        "spec.image",
        ["spec"],
        ["spec.imag"],
        ["spec.image.x"],
        ["meta.name"],
        ["/spec/image"],
        [""],
        [None],
        ["spec.image"] * 201,
        ["x" * 201],
        # What a workload cannot do without is missed as elsewhere.
        ["spec.image"],
    ],
)
def test_what_cannot_be_cleared_is_told(cast: Cast, paths: Any) -> None:
    made = create_template(cast)
    bob, at = Caller(cast.bob), f"{AT}/{made['meta']['id']}"
    refusal = bob("PATCH", at, {"fieldsToClear": paths}, 400)
    assert "fieldsToClear" in refusal["message"] or "image" in refusal["message"]
    assert bob("GET", at) == made
    bob("PUT", at, {"spec": SPEC, "fieldsToClear": ["spec.args"]}, 400)


def make_curator(cast: Cast) -> Caller:
    """Return somebody of team-a who changes templates and sees no other assets."""
    role = CustomRole.objects.create(name="Curator", permissions=["templates:edit"])
    AccessRule.objects.filter(user=cast.vera).update(role="", custom_role=role)
    return Caller(cast.vera)


def test_a_change_loses_no_asset_that_its_author_cannot_see(cast: Cast) -> None:
    source = DataSource.objects.create(
        name="corpus",
        kind="nfs",
        path="/corpus",
        origin={"server": "files.example.com", "export": "/corpus"},
        project=cast.team_a,
    )
    template = save_template(cast, data_sources=[str(source.pk)])
    alice, curator, at = Caller(cast.alice), make_curator(cast), f"{AT}/{template.pk}"
    whole = alice("GET", at)["spec"]
    lost = ["spec.image", "spec.compute", "spec.storage"]
    for body, fields in (
        ({"spec": {"command": "true"}}, lost),
        ({"fieldsToClear": ["spec.storage"]}, lost[:2]),
    ):
        refused = curator("PATCH", at, body, 400)
        assert "corpus" not in refused["message"]
        assert "fieldsToClear" in refused["message"]
        assert [each["field"] for each in refused["details"]] == fields
    assert alice("GET", at)["spec"] == whole
    assert curator("PATCH", at, {"meta": {"description": "x"}}, 202)["meta"]["version"] == 2
    assert alice("GET", at)["spec"] == whole
    # Whoever sees the assets keeps what they give, and who names it lets go of it.
    assert alice("PATCH", at, {"spec": {"command": "true"}}, 202)["spec"] == whole | {
        "command": "true"
    }
    other = save_template(cast, name="other", data_sources=[str(source.pk)])
    let_go = {"fieldsToClear": lost[:2], "spec": {"image": "x", "storage": None}}
    assert "storage" not in curator("PATCH", f"{AT}/{other.pk}", let_go, 202)["spec"]
    assert "storage" not in alice("GET", f"{AT}/{other.pk}")["spec"]


def test_a_change_does_not_take_an_image_that_its_author_cannot_see(cast: Cast) -> None:
    environment = Environment.objects.create(
        name="ours", image="team/ours", framework="PyTorch", project=cast.team_a
    )
    template = save_template(cast, image="", environment_choice=str(environment.pk))
    curator, at = make_curator(cast), f"{AT}/{template.pk}"
    refused = curator("PATCH", at, {"spec": {"numWorkers": 5}}, 400)
    assert "spec.image" in [each["field"] for each in refused["details"]]
    assert Caller(cast.alice)("GET", at)["spec"]["image"] == "team/ours"
    own = {"fieldsToClear": ["spec.image", "spec.compute"], "spec": {"image": "x"}}
    assert curator("PATCH", at, own, 202)["spec"]["image"] == "x"


@pytest.mark.parametrize("is_made_on_the_page", [True, False])
def test_a_change_keeps_the_credential_of_a_variable(cast: Cast, is_made_on_the_page: bool) -> None:
    credential = Credential.objects.create(
        name="login", kind=Credential.Kind.PASSWORD, project=cast.team_a
    )
    secret = {"name": secret_name(credential), "key": "password"}
    if is_made_on_the_page:
        row = {"name": "A", "source": "credential", "credential": secret["name"], "key": "password"}
        typed = {f"variables-0-{name}": value for name, value in row.items()}
        key: Any = save_template(cast, **typed).pk
    else:
        variables = [{"name": "A", "secret": secret}]
        key = create_template(cast, spec=SPEC | {"environmentVariables": variables})["meta"]["id"]
    dropped = ["spec.image", "spec.compute"]
    change = {"fieldsToClear": dropped, "spec": {"image": "x", "command": "true"}}
    changed = make_curator(cast)("PATCH", f"{AT}/{key}", change, 202)["spec"]
    assert changed["command"] == "true"
    assert changed["environmentVariables"] == [{"name": "A", "secret": secret}]
