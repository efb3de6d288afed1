"""Nothing of a request is passed over in silence: each part of it counts, or is refused by name."""

from typing import Any
from urllib.parse import quote

import pytest

from projects import custom_roles, granting
from projects.api.authorization import MAX_SUBJECTS
from projects.api.base import MAX_CONDITIONS
from projects.permissions import VIEWER
from projects.scopes import project_scope
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from workloads import journal

RULES = "/authorization/access-rules"


def list_subjects(caller: Caller, query: str) -> set[str]:
    answer = caller("GET", f"{RULES}?{query}")
    assert answer["totalRecords"] == len(answer["accessRules"])
    assert caller("GET", f"{RULES}/count?{query}") == {"count": answer["totalRecords"]}
    return {each["subjectId"] for each in answer["accessRules"]}


def test_the_last_of_many_conditions_counts_as_the_first(cast: Cast) -> None:
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    alice, address = Caller(cast.alice), "/workloads/count?filterBy="
    others = ["name!=nothing"] * (MAX_CONDITIONS - 1)
    assert alice("GET", address + ",".join([*others, "name==nothing"])) == {"count": 0}
    refused = alice("GET", address + ",".join([*others, "name!=a", "name==nothing"]), None, 400)
    assert str(MAX_CONDITIONS) in refused["message"]


@pytest.mark.parametrize("role", ["99", "0", "1099", "emperor", "custom:99", "custom:x"])
def test_a_role_that_is_not_there_has_no_rules(cast: Cast, role: str) -> None:
    assert list_subjects(Caller(cast.alice), f"roleId={role}") == set()


def test_rules_are_found_by_the_key_of_a_custom_role(cast: Cast) -> None:
    alice = Caller(cast.alice)
    role = custom_roles.create("Curator", "", ["templates:delete"], by=cast.alice)
    key = f"custom:{role.pk}"
    granting.grant_role(key, to=cast.vera, scope=project_scope(cast.team_b), by=cast.alice)
    everybody = list_subjects(alice, "")
    assert list_subjects(alice, f"roleId={key}") == {"vera"}
    assert list_subjects(alice, f"filterBy=roleKey=={key}") == {"vera"}
    assert list_subjects(alice, f"filterBy=roleKey!={key},roleKey!={VIEWER}") == everybody - {
        "vera"
    }
    keys = [each["roleKey"] for each in alice("GET", f"{RULES}?sortBy=roleKey")["accessRules"]]
    assert keys == sorted(keys)
    assert key in keys


def test_the_id_of_a_scope_without_its_level_is_refused(cast: Cast) -> None:
    alice, scope = Caller(cast.alice), f"scopeId={cast.team_a.pk}"
    refused = alice("GET", f"{RULES}?{scope}", None, 400)
    assert refused["details"][0]["field"] == "scopeType"
    assert list_subjects(alice, f"scopeType=project&{scope}") < list_subjects(alice, "")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{RULES}?subjectType=user.", "subjectType"),
        ("/workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase,Type.", "groupBy"),
    ],
    ids=["one", "several"],
)
def test_a_value_that_ends_in_a_dot_is_not_taken_for_none(cast: Cast, path: str, name: str) -> None:
    """Clients send the class of a value before it, and a dot."""
    refused = Caller(cast.alice)("GET", path, None, 400)
    assert [each["field"] for each in refused["details"]] == [name]


def test_each_of_the_subjects_of_a_list_counts(cast: Cast) -> None:
    alice = Caller(cast.alice)
    others = [f"nobody{number}" for number in range(MAX_SUBJECTS - 1)]
    assert list_subjects(alice, "subjectIds=" + ",".join([*others, "bob"])) == {"bob"}
    assert list_subjects(alice, "subjectIds=vera&subjectIds=bob") == {"bob", "vera"}
    many = ",".join([*others, "nobody", "bob"])
    refused = alice("GET", f"{RULES}?subjectIds={many}", None, 400)
    assert str(MAX_SUBJECTS) in refused["message"]


def test_each_of_the_ids_of_assets_counts(cast: Cast) -> None:
    alice, keys = Caller(cast.alice), []
    for name in ("one", "two", "three"):
        body: dict[str, Any] = {"meta": {"name": name, "scope": "tenant"}, "spec": {}}
        keys.append(alice("POST", "/asset/compute", body, 202)["meta"]["id"])
    for query in (f"assetIds={keys[0]}&assetIds={keys[1]}", f"assetIds={keys[0]},{keys[1]}"):
        entries = alice("GET", f"/asset/compute?{query}")["entries"]
        assert [each["meta"]["name"] for each in entries] == ["one", "two"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "a", "name": "b"}',
        b'{"name": "a", "resources": [{"gpu": {"limit": 1, "limit": 2}}]}',
        b'{"\\ud800": 1, "\\ud800": 2}',
    ],
)
def test_a_name_twice_in_an_object_is_refused(cast: Cast, body: bytes) -> None:
    refused = Caller(cast.alice)("POST", "/org-unit/departments", body, 400)
    assert "twice" in refused["message"]


def test_a_filter_is_refused_whole_that_is_too_long(cast: Cast) -> None:
    address = f"/workloads?filterBy={quote('name==' + 'x' * 8200)}"
    assert "filterBy" in Caller(cast.alice)("GET", address, None, 400)["message"]
