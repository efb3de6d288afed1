"""Assets over REST: the same rules as on the pages, nothing of a secret, and a change that comes
too late is told what changed.
"""

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from environments.models import Environment
from projects.models import AuditEntry, Department
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from tests.cast import Cast
from tests.environments.assets import (
    BY_NAME,
    CREDENTIALS,
    ONE_OF_EACH,
    SAMPLES,
    SECRET,
    Api,
    Sample,
    client_of,
)

pytestmark = pytest.mark.django_db
EACH = pytest.mark.parametrize("sample", SAMPLES, ids=str)
EACH_KIND = pytest.mark.parametrize("sample", ONE_OF_EACH, ids=str)


@EACH
def test_one_is_made_read_changed_and_deleted(cast: Cast, sample: Sample) -> None:
    api = Api(cast.mallory)
    meta = {"name": "mine", "description": "words", "scope": "project", "projectId": cast.team_b.pk}
    status, made = api("post", sample.api, {"meta": meta, "spec": sample.spec})
    assert status == 202, made
    assert {name: made["meta"][name] for name in (*meta, "createdBy", "version")} == meta | {
        "createdBy": "mallory",
        "version": 1,
    }
    rest = sample.form.rest
    assert rest is not None
    secret = {
        part.place.removeprefix("spec.").partition(".")[0] for part in rest.parts if part.is_secret
    }
    assert {name: made["spec"].get(name) for name in sample.spec if name not in secret} == {
        name: value for name, value in sample.spec.items() if name not in secret
    }
    address = f"{sample.api}/{made['meta']['id']}"
    assert api("get", address) == (200, made)
    assert api("get", sample.api)[1]["entries"] == [made]
    status, changed = api("patch", address, {"meta": {"description": "other words", "version": 1}})
    assert (status, changed["meta"]["version"], changed["meta"]["description"]) == (
        202,
        2,
        "other words",
    )
    assert changed["spec"] == made["spec"]
    # Nothing is changed: the version stays, and the audit log has no entry of it.
    assert api("put", address, changed) == (202, changed)
    assert api("delete", address)[0] == 202
    assert api("get", address)[0] == 404
    assert list(
        AuditEntry.objects.filter(entity=sample.kind.key)
        .order_by("pk")
        .values_list("event", flat=True)
    ) == [*("create", "update", "delete")]


@EACH
def test_what_is_not_known_is_refused_by_its_name(cast: Cast, sample: Sample) -> None:
    meta = {"name": "mine", "projectId": cast.team_b.pk}
    body = {"meta": meta | {"isAdmin": True}, "spec": sample.spec | {"isBuiltIn": True}}
    status, answer = Api(cast.mallory)("post", sample.api, body)
    assert status == 400
    assert {each["field"] for each in answer["details"]} == {"meta.isAdmin", "spec.isBuiltIn"}
    assert not sample.kind.model.objects.exists()


@pytest.mark.parametrize(
    ("name", "spec", "field", "words"),
    [
        ("environment", {"image": 5}, "spec.image", "must be a text"),
        ("environment", {}, "spec.image", "must be given"),
        (
            "environment",
            {"image": "x", "environmentVariables": [{"name": "1", "value": ""}]},
            "spec.environmentVariables.0.name",
            "must",
        ),
        (
            "environment",
            {"image": "x", "environmentVariables": {"a": 1}},
            "spec.environmentVariables",
            "must be a list",
        ),
        (
            "environment",
            {"image": "x", "imagePullPolicy": "Often"},
            "spec.imagePullPolicy",
            "must be one of Always",
        ),
        ("compute", {"gpuDevicesRequest": -1}, "spec.gpuDevicesRequest", "from 0"),
        (
            "compute",
            {"gpuDevicesRequest": True},
            "spec.gpuDevicesRequest",
            "must be a whole number",
        ),
        ("compute", {"cpuCoreRequest": "1"}, "spec.cpuCoreRequest", "must be a number"),
        ("data-source-git", {"repository": "ftp://x/y", "path": "/x"}, "spec.repository", "must"),
        ("data-source-git", {"repository": "https://a/b", "path": "x"}, "spec.path", "must"),
        (
            "data-source-pvc",
            {"existingPvc": False, "path": "/x"},
            "spec.claimInfo.size",
            "must be given",
        ),
        (
            "data-source-s3",
            {"bucket": "images", "url": "http://169.254.169.254", "path": "/x"},
            "spec.url",
            "leads where it may not",
        ),
        (
            "data-source-nfs",
            {"server": "metadata.google.internal", "path": "/e", "mountPath": "/x"},
            "spec.server",
            "leads where",
        ),
        (
            "data-source-config-map",
            {"configMap": "a", "mountPath": "/x", "defaultMode": "0999"},
            "spec.defaultMode",
            "like 0644",
        ),
        (
            "credential-registry",
            {"url": "https://", "user": "x", "password": "y"},
            "spec.url",
            "must be the address",
        ),
        ("credential-password", {"user": "x"}, "spec.password", "must be given"),
        (
            "credential-generic",
            {"keyValuePairs": [{"key": "a b", "value": "x"}]},
            "spec.keyValuePairs.0.key",
            "must",
        ),
        (
            "credential-generic",
            {"keyValuePairs": [{"key": "a", "value": ""}]},
            "spec.keyValuePairs.0.value",
            "must be given",
        ),
    ],
)
def test_what_is_wrong_is_named(
    cast: Cast, name: str, spec: dict[str, object], field: str, words: str
) -> None:
    meta = {"name": "mine", "projectId": cast.team_b.pk}
    status, answer = Api(cast.mallory)("post", BY_NAME[name].api, {"meta": meta, "spec": spec})
    assert status == 400
    messages = {each["field"]: each["message"] for each in answer["details"]}
    assert words in messages[field], messages


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({"name": "x"}, "meta.scope"),
        ({"projectId": 1}, "meta.name"),
        ({"name": "x", "scope": "world"}, "meta.scope"),
        ({"name": "x", "scope": "project"}, "meta.projectId"),
        ({"name": "x", "scope": "cluster", "clusterId": "y"}, "meta.clusterId"),
        ({"name": "x", "scope": "tenant"}, "meta.scope"),
        ({"name": 5, "projectId": 1}, "meta.name"),
        ({"name": "x", "projectId": 1, "version": "1"}, "meta.version"),
    ],
)
def test_what_is_wrong_with_the_meta_data_is_named(
    cast: Cast, meta: dict[str, object], field: str
) -> None:
    given = meta | ({"projectId": cast.team_b.pk} if "projectId" in meta else {})
    status, answer = Api(cast.mallory)(
        "post", "/api/v1/asset/environment", {"meta": given, "spec": {"image": "x"}}
    )
    assert status == 400
    assert field in {each["field"] for each in answer["details"]}


@pytest.mark.parametrize(
    "body", [[], "x", 5, {"meta": []}, {"spec": "x"}, {"meta": {"name": {"a": 1}}}]
)
def test_a_body_of_another_shape_is_refused(cast: Cast, body: object) -> None:
    assert Api(cast.mallory)("post", "/api/v1/asset/compute", body)[0] == 400


@EACH_KIND
def test_a_change_that_comes_too_late_is_told_what_changed(cast: Cast, sample: Sample) -> None:
    asset = sample.make(TENANT, cast.alice)
    api, address = Api(cast.alice), f"{sample.api}/{asset.pk}"
    assert api("patch", address, {"meta": {"description": "first", "version": 1}})[0] == 202
    status, answer = api("patch", address, {"meta": {"description": "second", "version": 1}})
    assert status == 409
    assert "its version is 2, and you changed 1. alice changed description" in answer["message"]
    assert (
        api("put", address, {"meta": {"name": "mine", "version": 1}, "spec": sample.spec})[0] == 409
    )
    assert api("delete", f"{address}?version=1")[0] == 409
    assert api("get", address)[1]["meta"]["description"] == "first"
    assert api("patch", address, {"meta": {"description": "third"}})[0] == 202


@EACH_KIND
def test_another_teams_asset_is_not_there_and_what_one_only_sees_is_refused(
    cast: Cast, sample: Sample
) -> None:
    theirs, common = (
        sample.make(project_scope(cast.team_a), cast.alice, "theirs"),
        sample.make(TENANT, cast.alice, "common"),
    )
    mallory, vera = Api(cast.mallory), Api(cast.vera)
    change = {"meta": {"description": "x"}}
    for key in (theirs.pk, uuid.uuid4()):
        answers = [
            mallory(method, f"{sample.api}/{key}", body)
            for method, body in (("get", None), ("patch", change), ("delete", None))
        ]
        assert [status for status, _ in answers] == [404, 404, 404]
    assert [each["meta"]["name"] for each in mallory("get", sample.api)[1]["entries"]] == ["common"]
    assert mallory("patch", f"{sample.api}/{common.pk}", change)[0] == 403
    assert vera("delete", f"{sample.api}/{theirs.pk}")[0] == 403
    assert (
        vera(
            "post",
            sample.api,
            {"meta": {"name": "x", "projectId": cast.team_a.pk}, "spec": sample.spec},
        )[0]
        == 403
    )
    taken = mallory(
        "post",
        sample.api,
        {"meta": {"name": "x", "projectId": cast.team_a.pk}, "spec": sample.spec},
    )
    assert taken[0] == 400


def test_an_asset_of_another_form_is_not_there(cast: Cast) -> None:
    git = BY_NAME["data-source-git"].make(TENANT, cast.alice)
    assert Api(cast.alice)("get", f"/api/v1/asset/datasource/nfs/{git.pk}")[0] == 404
    assert Api(cast.alice)("get", "/api/v1/asset/datasource/nfs")[1]["entries"] == []


def test_a_list_is_narrowed_by_scope(cast: Cast) -> None:
    sample, alice = BY_NAME["environment"], cast.alice
    scopes = {
        "tenant": TENANT,
        "cluster": cluster_scope(cast.cluster.pk),
        "research": department_scope(cast.research),
        "team-a": project_scope(cast.team_a),
        "team-b": project_scope(cast.team_b),
    }
    for name, scope in scopes.items():
        sample.make(scope, alice, name)

    def names(query: str) -> set[str]:
        return {
            each["meta"]["name"]
            for each in Api(alice)("get", f"{sample.api}?{query}")[1]["entries"]
        }

    assert names("") == set(scopes)
    assert names("scope=tenant") == {"tenant"}
    assert names("scope=project") == {"team-a", "team-b"}
    assert names(f"scope=project&projectId={cast.team_a.pk}") == {"team-a"}
    assert names(f"projectId={cast.team_a.pk}") == {"tenant", "cluster", "research", "team-a"}
    assert names(f"departmentId={cast.research.pk}") == {"tenant", "research"}
    assert names(f"departmentId={cast.research.pk}&includeDescendants=true") == {
        "tenant",
        "research",
        "team-a",
        "team-b",
    }
    assert names(f"clusterId={cast.cluster.pk}&includeDescendants=true") == {
        "tenant",
        "cluster",
        "team-a",
        "team-b",
    }
    assert names("name=tenant") == {"tenant"}
    assert names("filterBy=name%3D%40team") == {"team-a", "team-b"}
    assert Api(alice)("get", f"{sample.api}?scope=project&includeDescendants=true")[0] == 400
    assert Api(alice)("get", f"{sample.api}?projectId=x")[0] == 400


@pytest.mark.parametrize("is_there", [True, False])
def test_a_scope_in_which_one_may_make_none_is_refused_as_one_that_is_not_there(
    cast: Cast, is_there: bool
) -> None:
    meta = {"name": "mine", "scope": "project", "projectId": cast.team_b.pk if is_there else 10**6}
    status, refusal = Api(cast.bob)(
        "post", "/api/v1/asset/environment", {"meta": meta, "spec": {"image": "team/x"}}
    )
    text = "Choose who can use it: this scope is not there, or you may not do this in it."
    assert status == 400
    assert refusal["details"] == [{"field": "meta.scope", "message": text}]


def test_scopes_given_together_all_count(cast: Cast) -> None:
    sample, alice = BY_NAME["environment"], cast.alice
    other = Department.objects.create(name="other")
    scopes = {
        "tenant": TENANT,
        "cluster": cluster_scope(cast.cluster.pk),
        "research": department_scope(cast.research),
        "other": department_scope(other),
        "team-a": project_scope(cast.team_a),
    }
    for name, scope in scopes.items():
        sample.make(scope, alice, name)
    project = f"projectId={cast.team_a.pk}"
    research, cluster = f"departmentId={cast.research.pk}", f"clusterId={cast.cluster.pk}"
    elsewhere, below = f"departmentId={other.pk}", "includeDescendants=true"
    used = {"tenant", "cluster", "research", "team-a"}
    for query, expected in {
        f"{project}&{research}&{cluster}": used,
        f"{research}&{cluster}": used - {"team-a"},
        f"{research}&{cluster}&{below}": used,
        f"{elsewhere}&{cluster}&{below}": {"tenant", "cluster", "other"},
        f"scope=cluster&{project}&{cluster}": {"cluster"},
        f"scope=department&{research}&{cluster}": {"research"},
    }.items():
        _, answer = Api(alice)("get", f"{sample.api}?{query}")
        assert {each["meta"]["name"] for each in answer["entries"]} == expected, query
    for query in (f"{project}&{elsewhere}", f"{project}&clusterId={uuid.uuid4()}"):
        status, answer = Api(alice)("get", f"{sample.api}?{query}")
        assert (status, answer["details"][0]["field"]) == (400, "projectId"), query
    # Whoever may not see a project learns nothing of where it is.
    answers = [
        Api(cast.mallory)("get", f"{sample.api}?{project}&{each}") for each in (research, elsewhere)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


@pytest.mark.parametrize("sample", CREDENTIALS, ids=str)
def test_no_answer_has_a_secret(cast: Cast, sample: Sample) -> None:
    api = Api(cast.mallory)
    body = {"meta": {"name": "mine", "projectId": cast.team_b.pk}, "spec": sample.spec}
    _, made = api("post", sample.api, body)
    address = f"{sample.api}/{made['meta']['id']}"
    for answer in (
        made,
        api("get", address),
        api("get", sample.api),
        api("put", address, body),
        api("patch", address, {"meta": {}}),
    ):
        assert SECRET not in str(answer)


def test_a_long_list_takes_the_same_queries(cast: Cast) -> None:
    api = Api(cast.bob)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert len(api("get", "/api/v1/asset/environment?limit=50")[1]["entries"]) == 50
        return len(captured)

    made = [
        Environment(name=f"a-{each:04}", project=cast.team_a, image="x", created_by=cast.bob)
        for each in range(1060)
    ]
    Environment.objects.bulk_create(made[:60])
    queries()
    before = queries()
    Environment.objects.bulk_create(made[60:])
    assert queries() == before <= 12


LONG = "x" * 1500
"""A value that the audit log cuts."""
TOKENS = {"name": "API_TOKEN", "value": SECRET}
PAD = {"name": "PAD", "value": LONG}


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("asset/environment", {"image": "team/x", "environmentVariables": [TOKENS, PAD]}),
        (
            "asset/policies",
            {"rules": {"variables": {"default": {"API_TOKEN": SECRET, "PAD": LONG}}}},
        ),
        (
            "workload-templates/trainings",
            {"image": "team/x", "environmentVariables": [TOKENS, PAD]},
        ),
    ],
)
def test_no_entry_of_the_audit_log_has_a_secret_however_long_it_is(
    cast: Cast, path: str, spec: dict[str, Any]
) -> None:
    api, page = Api(cast.alice), client_of(cast.alice)
    status, made = api(
        "post", f"/api/v1/{path}", {"meta": {"name": "mine", "scope": "tenant"}, "spec": spec}
    )
    assert status == 202, made
    other = json.loads(json.dumps(spec).replace(LONG, LONG[:-1]))
    assert (
        api(
            "patch",
            f"/api/v1/{path}/{made['meta']['id']}",
            {"meta": {"name": "other"}, "spec": other},
        )[0]
        == 202
    )
    assert api("delete", f"/api/v1/{path}/{made['meta']['id']}")[0] == 202
    entries = list(AuditEntry.objects.filter(entity_id=made["meta"]["id"]))
    assert [each.event for each in entries] == ["delete", "update", "create"]
    assert "API_TOKEN" in str(entries[0].before)
    assert LONG[:400] in str(entries[0].before)
    texts = [str([each.before, each.after]) for each in entries] + [
        json.dumps(api("get", "/api/v1/audit/log")[1])
    ]
    texts += [page.get(f"/audit/{each.pk}").content.decode() for each in entries]
    for address in ("/audit?format=csv", "/audit/export"):
        answer = page.get(address)
        assert answer.status_code == 200
        texts.append(answer.getvalue().decode())
    assert [each for each in texts if SECRET in each] == []
