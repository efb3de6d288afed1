"""ETag and If-Match of assets and templates."""

import json
from typing import Any

import pytest

from environments.models import Template
from projects.scopes import TENANT
from tests.api.calling import Caller
from tests.cast import Cast
from tests.environments.assets import ONE_OF_EACH, Sample

EACH_KIND = pytest.mark.parametrize("sample", ONE_OF_EACH, ids=str)
TEMPLATES = "/api/v1/workload-templates"
LATER = {"meta": {"description": "later"}}


def change(caller: Caller, address: str, tag: str, method: str = "PATCH", body: Any = LATER) -> Any:
    """Return status, body and ETag."""
    answer = caller.raw(method, address, body, if_match=tag)
    return answer.status_code, json.loads(answer.content), answer.get("ETag")


@EACH_KIND
def test_a_change_of_another_version_fails(cast: Cast, sample: Sample) -> None:
    alice = Caller(cast.alice)
    asset = sample.make(TENANT, cast.alice)
    address = f"{sample.api}/{asset.pk}"
    assert alice.raw("GET", address)["ETag"] == '"1"'
    assert change(alice, address, '"1"')[::2] == (202, '"2"')
    status, refused, _ = change(alice, address, '"1"')
    assert status == 412
    assert "its version is 2, and you changed 1. alice changed description" in refused["message"]
    body = {"meta": {"name": "mine"}, "spec": sample.spec}
    assert change(alice, address, '"1"', "PUT", body)[0] == 412
    assert change(alice, address, '"1"', "DELETE")[0] == 412
    asset.refresh_from_db()
    assert asset.version == 2
    assert change(alice, address, '"2"', "DELETE")[0] == 202


def make_template(alice: Caller) -> Any:
    body = {
        "meta": {"name": "mine", "scope": "tenant"},
        "spec": {"image": "a", "distributedFramework": "PyTorch"},
    }
    return alice("POST", TEMPLATES, body, 202)


def test_templates_have_it_too(cast: Cast) -> None:
    alice = Caller(cast.alice)
    address = f"{TEMPLATES}/{make_template(alice)['meta']['id']}"
    for number, tag in enumerate(('"1"', '"9", "2"', 'W/"3"', "*")):
        body = {"spec": {"image": f"muster/x:{number}"}}
        assert change(alice, address, tag, body=body)[0] == 202
    assert change(alice, address, '"4"')[0] == 412
    assert change(alice, address, '"4"', "PUT", {"spec": {"image": "b"}})[0] == 412
    assert change(alice, address, '"4"', "DELETE")[0] == 412
    assert change(alice, address, '"5"', "DELETE")[0] == 202
    assert not Template.objects.exists()


@pytest.mark.parametrize("tag", ['"abc"', '"0"', '"01"', '"9", "8"', '""', '"3"'])
def test_what_was_never_its_tag_is_told_as_that(cast: Cast, tag: str) -> None:
    alice = Caller(cast.alice)
    address = f"{TEMPLATES}/{make_template(alice)['meta']['id']}"
    assert change(alice, address, '"1"')[0] == 202
    status, refused, _ = change(alice, address, tag)
    assert (status, "you changed" in refused["message"]) == (412, False)
    assert "is not an ETag that mine has or had" in refused["message"]
    assert "you changed 1" in change(alice, address, f'"1",{tag}')[1]["message"]


def test_the_version_of_the_body_stays_409(cast: Cast) -> None:
    alice = Caller(cast.alice)
    address = f"{TEMPLATES}/{make_template(alice)['meta']['id']}"
    late = {"meta": {"description": "x", "version": 7}}
    assert change(alice, address, '"1"', body=late)[0] == 409
    assert change(alice, address, '"7"', body=late)[0] == 412
    assert alice.raw("PATCH", address, late).status_code == 409


@pytest.mark.parametrize(
    "tag", ["1", '"1', '"1" "2"', '"1",', "W/1", '""x', '"' + "1" * 3000 + '"', '"é"']
)
def test_a_header_that_cannot_be_understood_changes_nothing(cast: Cast, tag: str) -> None:
    alice = Caller(cast.alice)
    made = make_template(alice)
    address = f"{TEMPLATES}/{made['meta']['id']}"
    status, refused, _ = change(alice, address, tag)
    assert (status, "If-Match" in refused["message"]) == (400, True)
    assert alice("GET", address) == made


def test_it_tells_nobody_of_what_they_may_not_see_or_change(cast: Cast) -> None:
    sample = ONE_OF_EACH[0]
    asset = sample.make(TENANT, cast.alice)
    address = f"{sample.api}/{asset.pk}"
    assert change(Caller(cast.bob), address, '"7"')[0] == 403
    template = make_template(Caller(cast.alice))["meta"]["id"]
    Template.objects.filter(pk=template).update(project=cast.team_a)
    assert change(Caller(cast.mallory), f"{TEMPLATES}/{template}", '"1"')[0] == 404
