"""A credential that cannot reach its clusters is refused where it is typed, and says why."""

import json
from typing import Any

import pytest

from environments import cluster_secrets
from environments.credentials import is_login_for
from environments.forms.credentials import MAX_SECRET_BYTES, MAX_SECRET_CHARS
from environments.forms.data_sources import MAX_CREDENTIALS
from environments.models import Credential
from projects.scopes import TENANT, Scope, department_scope, project_scope
from tests.cast import Cast
from tests.environments.assets import BY_NAME, Api, client_of

pytestmark = pytest.mark.django_db
GENERIC, REGISTRY = BY_NAME["credential-generic"], BY_NAME["credential-registry"]
HUB_KEY = "https://index.docker.io/v1/"


def create_generic(cast: Cast, *pairs: tuple[str, str]) -> tuple[int, Any]:
    """Create a generic credential of team-b over REST; return status and answer."""
    spec = {"keyValuePairs": [{"key": key, "value": value} for key, value in pairs]}
    meta = {"name": "mine", "projectId": cast.team_b.pk}
    return Api(cast.mallory)("post", GENERIC.api, {"meta": meta, "spec": spec})


def test_values_that_no_secret_has_room_for_are_refused(cast: Cast) -> None:
    most = MAX_SECRET_BYTES // MAX_SECRET_CHARS
    full = [(f"key-{number}", "x" * MAX_SECRET_CHARS) for number in range(most)]
    status, answer = create_generic(cast, *full, ("one-more", "x"))
    assert status == 400
    assert "1,048,577 bytes together; Kubernetes takes 1,048,576" in str(answer)
    assert create_generic(cast, *full)[0] == 202


def test_the_size_is_that_of_the_bytes_and_of_what_is_stored_too(cast: Cast) -> None:
    most = MAX_SECRET_BYTES // MAX_SECRET_CHARS
    full = [(f"key-{number}", "x" * MAX_SECRET_CHARS) for number in range(most - 1)]
    made = create_generic(cast, *full)[1]
    pairs = [{"key": key, "value": ""} for key, _ in full]
    pairs.append({"key": "more", "value": "ü" * (MAX_SECRET_CHARS // 2 + 1)})
    status, _ = Api(cast.mallory)(
        "patch", f"{GENERIC.api}/{made['meta']['id']}", {"spec": {"keyValuePairs": pairs}}
    )
    assert status == 400


def test_a_key_that_is_there_twice_is_refused(cast: Cast) -> None:
    status, answer = create_generic(cast, ("token", "first"), ("token", "second"))
    assert status == 400
    assert "There is such a key above already." in str(answer)
    assert not Credential.objects.exists()


def test_on_the_page_it_stands_beside_the_second_key(cast: Cast) -> None:
    typed = {"name": "mine", "scope": f"project:{cast.team_b.pk}"} | GENERIC.typed
    sent = typed | {"keys-1-key": "token", "keys-1-value": "second"}
    page = client_of(cast.mallory).post(GENERIC.new, sent)
    assert page.status_code == 422
    assert "There is such a key above already." in page.content.decode()


@pytest.mark.parametrize(
    ("pasted", "stored", "key"),
    [
        ("https://registry.example.com:5000/", "registry.example.com:5000", None),
        ("https://registry.example.com/v2/", "registry.example.com", None),
        ("registry.example.com/team", "registry.example.com/team", None),
        ("https://index.docker.io/v1/", "index.docker.io", HUB_KEY),
        ("https://docker.io", "docker.io", HUB_KEY),
    ],
)
def test_a_registry_is_known_by_the_address_of_its_images(
    cast: Cast, pasted: str, stored: str, key: str | None
) -> None:
    REGISTRY.make(project_scope(cast.team_b), cast.mallory, server=pasted)
    credential = Credential.objects.get()
    assert credential.public["server"] == stored
    assert is_login_for(stored, "team/x" if key else f"{stored}/x")
    [secret] = cluster_secrets.build_wanted_secrets([cast.team_b])[cast.team_b.pk]
    assert f'{{"auths": {{"{key or stored}": ' in secret.data[".dockerconfigjson"]


def test_a_registry_that_was_stored_as_it_was_pasted_is_known_too(cast: Cast) -> None:
    made = REGISTRY.make(project_scope(cast.team_b), cast.mallory)
    Credential.objects.update(public={"server": "https://docker.io/", "username": "robot"})
    made.refresh_from_db()
    assert is_login_for(made.public["server"], "team/x")  # type: ignore[attr-defined]
    [secret] = cluster_secrets.build_wanted_secrets([cast.team_b])[cast.team_b.pk]
    assert HUB_KEY in secret.data[".dockerconfigjson"]


def add_credentials(prefix: str, scope: Scope) -> None:
    """Add as many credentials of a scope as there may be."""
    Credential.objects.bulk_create(
        Credential(name=f"{prefix}-{number}", kind="generic", secret="{}", **scope.columns)
        for number in range(cluster_secrets.MAX_CREDENTIALS_OF_SCOPE)
    )


def test_a_scope_has_no_more_credentials_than_a_project_takes_of_it(cast: Cast) -> None:
    add_credentials("tenant", TENANT)
    add_credentials("department", department_scope(cast.research))
    add_credentials("own", project_scope(cast.team_a))
    for scope in (
        {"projectId": cast.team_a.pk},
        {"scope": "tenant"},
        {"departmentId": cast.research.pk},
    ):
        body = {"meta": {"name": "other"} | scope, "spec": GENERIC.spec}
        status, answer = Api(cast.alice)("post", GENERIC.api, body)
        assert status == 400, answer
        assert "200 credentials of this scope already, and no scope can have more" in str(answer)
    own = Credential.objects.get(name="own-0")
    department = {"scope": "department", "departmentId": cast.research.pk}
    body = {"meta": department, "spec": {"keyValuePairs": [{"key": "token", "value": "x"}]}}
    status, answer = Api(cast.alice)("patch", f"{GENERIC.api}/{own.pk}", body)
    assert status == 400, answer
    # What is there is changed as ever.
    body["meta"] = {"description": "words"}
    status, answer = Api(cast.alice)("patch", f"{GENERIC.api}/{own.pk}", body)
    assert status == 202, answer
    [secrets] = cluster_secrets.build_wanted_secrets([cast.team_a]).values()
    assert len(secrets) == 3 * cluster_secrets.MAX_CREDENTIALS_OF_SCOPE


def test_the_secrets_of_a_scope_have_so_many_bytes_and_no_more(cast: Cast) -> None:
    fitting = cluster_secrets.MAX_BYTES_OF_SCOPE // MAX_SECRET_BYTES
    most = MAX_SECRET_BYTES // MAX_SECRET_CHARS - 1
    full = [{"key": f"key-{number}", "value": "x" * MAX_SECRET_CHARS} for number in range(most)]
    api = Api(cast.alice)

    def create(name: str, scope: dict[str, Any], pairs: list[dict[str, str]]) -> tuple[int, Any]:
        spec = {"keyValuePairs": pairs}
        return api("post", GENERIC.api, {"meta": {"name": name} | scope, "spec": spec})

    def change(made: Any, body: dict[str, Any]) -> tuple[int, Any]:
        return api("patch", f"{GENERIC.api}/{made['meta']['id']}", body)

    mine = {"projectId": cast.team_b.pk}
    made = [create(f"full-{number}", mine, full) for number in range(fitting)]
    assert [status for status, _ in made] == [202] * fitting
    status, answer = create("more", mine, full)
    assert status == 400, answer
    assert "bytes together, and a scope can have 4,194,304" in str(answer)
    # Another scope has its own, and nothing that is too much comes from there.
    status, other = create("other", {"projectId": cast.team_a.pk}, full)
    assert status == 202, other
    status, answer = change(other, {"meta": {"scope": "project"} | mine})
    assert status == 400
    assert "bytes together" in str(answer)
    # What is there is changed as ever, as long as it does not grow.
    first = made[0][1]
    assert change(first, {"meta": {"description": "words"}})[0] == 202
    assert change(first, {"spec": {"keyValuePairs": full[:1]}})[0] == 202
    assert change(first, {"spec": {"keyValuePairs": full}})[0] == 202
    assert create("small", mine, full[:1])[0] == 202


def test_a_secret_of_a_scope_that_is_too_full_can_be_renewed(cast: Cast) -> None:
    """A release that did not bound the scope has filled it."""
    full = json.dumps({"key": "x" * MAX_SECRET_BYTES})
    made = create_generic(cast, ("token", "x" * 5_000))[1]
    Credential.objects.bulk_create(
        Credential(name=f"full-{number}", kind="generic", secret=full, project=cast.team_b)
        for number in range(5)
    )

    def renew(length: int) -> int:
        pairs = [{"key": "token", "value": "y" * length}]
        address = f"{GENERIC.api}/{made['meta']['id']}"
        status, _ = Api(cast.mallory)("patch", address, {"spec": {"keyValuePairs": pairs}})
        return status

    assert [renew(5_000), renew(4_000), renew(5_000)] == [202, 202, 400]


def test_what_a_project_has_keeps_nobody_from_making_one_for_all(cast: Cast) -> None:
    add_credentials("own", project_scope(cast.team_b))
    for scope in ({"scope": "tenant"}, {"departmentId": cast.research.pk}):
        body = {"meta": {"name": "for-all"} | scope, "spec": GENERIC.spec}
        status, answer = Api(cast.alice)("post", GENERIC.api, body)
        assert status == 202, answer
    made = set(Credential.objects.filter(name="for-all").values_list("pk", flat=True))
    [secrets] = cluster_secrets.build_wanted_secrets([cast.team_b]).values()
    assert {str(key) for key in made} < {each.credential for each in secrets}


def test_a_data_source_takes_a_credential_beyond_those_that_its_form_lists(cast: Cast) -> None:
    Credential.objects.bulk_create(
        Credential(name=f"a-{number}", kind="password", secret="{}", project=cast.team_a)
        for number in range(MAX_CREDENTIALS)
    )
    last = BY_NAME["credential-password"].make(project_scope(cast.team_b), cast.alice, name="z")
    api, git = Api(cast.alice), BY_NAME["data-source-git"]
    meta = {"name": "mine", "projectId": cast.team_b.pk}
    spec = git.spec | {"credentialId": str(last.pk)}
    status, made = api("post", git.api, {"meta": meta, "spec": spec})
    assert status == 202, made
    address = f"{git.api}/{made['meta']['id']}"
    status, changed = api("patch", address, {"meta": {"description": "words"}})
    assert (status, changed["spec"]["credentialId"]) == (202, str(last.pk))
    page = client_of(cast.alice).get(f"/data-sources/{made['meta']['id']}/edit")
    assert str(last.pk) in page.content.decode()
