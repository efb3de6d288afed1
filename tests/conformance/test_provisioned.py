"""What Muster applies for a project is taken by a server that checks strictly: its namespace,
Queues, Secrets and account.
"""

from decimal import Decimal

import pytest

from clusters import project_manifests
from clusters.ownership import PROJECT_LABEL, Owner
from projects.shares import Share, Shares
from tests.conformance.api import Api, Object

OWNER = Owner(PROJECT_LABEL, "team-a", "3f1c6f0e")
SHARES = Shares(
    Share(Decimal("2.5"), Decimal(4), Decimal(2)),
    Share(None, None, Decimal(1)),
    Share(Decimal(10) ** 12, None, Decimal(0)),
)
SECRET = project_manifests.WantedSecret(
    "muster-registry-0123456789ab",
    "credential",
    "kubernetes.io/dockerconfigjson",
    {".dockerconfigjson": '{"auths": {}}'},
    is_pull=True,
)


def check_applied(api: Api, path: str, body: Object) -> Object:
    """Fails unless the server would take the object just as it is; gives what it would then
    have.
    """
    answer = api.apply(
        f"{path}/{body['metadata']['name']}",
        body,
        "muster",
        force="true",
        dryRun="All",
        fieldValidation="Strict",
    )
    assert answer.status in (200, 201), answer.text[:2000]
    assert answer.warnings == []
    made: Object = answer.json()
    return made


@pytest.mark.parametrize("parent", ["", "department-research"])
def test_a_queue_is_taken(api: Api, parent: str) -> None:
    wanted = project_manifests.build_queue(OWNER, "conformance-queue", "Team A", SHARES, parent)
    made = check_applied(api, "/apis/scheduling.run.ai/v2/queues", wanted.body)
    assert made["spec"] == wanted.body["spec"]


def test_a_namespace_is_taken(api: Api) -> None:
    wanted = project_manifests.build_namespace(OWNER, "conformance-applied", None, adopted=False)
    assert (
        check_applied(api, "/api/v1/namespaces", wanted.body)["metadata"]["labels"].items()
        >= OWNER.labels.items()
    )


def test_the_secret_of_a_registry_and_the_account_that_uses_it_are_taken(
    api: Api, namespace: str
) -> None:
    wanted = project_manifests.build_secret(OWNER, SECRET)
    made = check_applied(api, f"/api/v1/namespaces/{namespace}/secrets", wanted.body)
    assert (made["type"], made["data"]) == (wanted.body["type"], wanted.body["data"])
    account = project_manifests.build_service_account(OWNER, None, [wanted.name])
    assert account is not None
    made = check_applied(api, f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    assert made["imagePullSecrets"] == [{"name": wanted.name}]
