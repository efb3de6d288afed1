"""What a submission would become, over REST; and whose token it is."""

import pytest

from console import VERSION
from projects import personal_keys, tokens
from tests.api.calling import Caller, a_body
from tests.cast import Cast
from workloads.models import Workload

ADDRESS = "/workloads/distributed/preview"


def test_a_preview_has_the_objects_and_the_fit_and_submits_nothing(cast: Cast) -> None:
    preview = Caller(cast.bob)("POST", ADDRESS, a_body(cast))
    assert [each["kind"] for each in preview["objects"]][-1] == "PyTorchJob"
    assert "kind: PyTorchJob" in preview["manifest"]
    assert preview["fit"]["verdict"] in ("never", "waits", "unknown", "fits")
    assert preview["fit"]["message"]
    assert preview["fit"]["quota"]["message"]
    assert not Workload.objects.exists()


def test_a_preview_refuses_what_a_submission_refuses_in_the_same_words(cast: Cast) -> None:
    body = a_body(cast, numWorkers=0)
    refusals = [
        Caller(cast.bob)("POST", address, body, status=400)
        for address in (ADDRESS, "/workloads/distributed")
    ]
    assert refusals[0] == refusals[1]
    Caller(cast.vera)("POST", ADDRESS, a_body(cast), status=403)
    Caller(cast.mallory)("POST", ADDRESS, a_body(cast), status=400)


@pytest.mark.parametrize("is_key", [False, True])
def test_a_caller_is_told_who_they_are(cast: Cast, is_key: bool) -> None:
    key = personal_keys.create_key("laptop", owner=cast.bob)[0] if is_key else None
    me = Caller(token=tokens.issue_token(cast.bob, key)[0])("GET", "/me")
    assert (me["username"], me["kind"]) == ("bob", "access-key" if is_key else "user")
    assert me["serverVersion"] == VERSION
    assert Caller().raw("GET", "/me").headers["Muster-Version"] == VERSION
