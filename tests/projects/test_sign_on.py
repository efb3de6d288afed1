"""Single sign-on with a real provider on loopback: in, and who one becomes."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.db import connections
from django.test import Client

from projects import user_actions
from projects.models import AccessRule, AuditEntry, User
from projects.permissions import L2
from projects.sign_on import accounts
from tests.cast import PASSWORD, Cast, make_cast
from tests.oidc_provider import CLIENT, WELL_KNOWN, Claims, Provider
from tests.projects.signing_on import (
    begin,
    follow_provider,
    provider,
    running,
    sign_on,
    signed_in_as,
)

__all__ = ["provider", "running"]


def test_the_first_sign_in_makes_a_user_without_rights(
    client: Client, cast: Cast, provider: Provider
) -> None:
    answer = sign_on(client)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/projects")
    carol = User.objects.get(username="carol")
    assert signed_in_as(client) == "carol"
    assert (carol.email, carol.has_usable_password(), carol.is_superuser) == (
        "carol@example.com",
        False,
        False,
    )
    assert not carol.rights.grants
    assert client.get("/projects").status_code == 200
    assert AuditEntry.objects.filter(event="sign-in", succeeded=True, subject="carol").count() == 1


def test_the_second_sign_in_is_the_same_user_although_the_name_changed(
    client: Client, cast: Cast, provider: Provider
) -> None:
    sign_on(client)
    provider.people["carol-1"]["preferred_username"] = "carol-married"
    assert sign_on(Client()).status_code == 302
    assert User.objects.filter(username__startswith="carol").count() == 1
    assert SocialAccount.objects.count() == 1


def test_a_name_that_differs_by_case_from_one_of_the_same_moment_is_refused(
    client: Client, cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = accounts.prepare_user

    def prepare_late(user: User, claims: Claims) -> User:
        prepared = prepare(user, claims)
        User.objects.create_user("Carol")
        return prepared

    monkeypatch.setattr(accounts, "prepare_user", prepare_late)
    answer = sign_on(client)
    assert answer.status_code == 409
    assert "Somebody of this name came in at the same moment" in answer.content.decode()
    assert User.objects.filter(username__iexact="carol").count() == 1


def test_nothing_is_kept_of_what_the_provider_told_but_who_it_was(
    client: Client, cast: Cast, provider: Provider
) -> None:
    sign_on(client)
    assert SocialAccount.objects.get().extra_data == {"iss": provider.url, "sub": "carol-1"}
    assert not SocialToken.objects.exists()


def test_an_endpoint_keeps_its_own_query(client: Client, cast: Cast, provider: Provider) -> None:
    """Azure AD B2C names its policy there."""

    def describe(document: Claims) -> None:
        document["authorization_endpoint"] += "?p=b2c_1_sign_in&x=a%20b"

    provider.change_document = describe
    assert sign_on(client).status_code == 302
    assert signed_in_as(client) == "carol"
    [query] = provider.queries
    assert (query["p"], query["x"], query["client_id"]) == ("b2c_1_sign_in", "a b", CLIENT)


def test_the_request_has_state_nonce_and_a_challenge_that_differ_each_time(
    client: Client, cast: Cast, provider: Provider
) -> None:
    for _ in range(2):
        follow_provider(begin(client))
    for name in ("state", "nonce", "code_challenge"):
        first, second = (query[name] for query in provider.queries)
        assert len(first) >= 16
        assert first != second
    assert set(provider.queries[0]["scope"].split()) == {"openid", "profile", "email"}


def test_a_browser_adds_nothing_to_the_request(
    client: Client, cast: Cast, provider: Provider
) -> None:
    answer = client.post(
        "/sign-on?scope=admin&auth_params=client_id%3Dother&process=connect",
        {"process": "connect", "scope": "admin"},
    )
    query = parse_qs(urlsplit(answer.headers["Refresh"].partition("url=")[2]).query)
    assert query["client_id"] == [CLIENT]
    assert "admin" not in query["scope"][0]


def test_groups_are_told_at_every_sign_in_and_rules_for_them_apply(
    client: Client, cast: Cast, provider: Provider
) -> None:
    group = Group.objects.create(name="ml-team")
    AccessRule.objects.create(group=group, project=cast.team_a, role=L2)
    sign_on(client, f"/projects/{cast.team_a.pk}")
    assert client.get(f"/projects/{cast.team_a.pk}").status_code == 200
    assert set(User.objects.get(username="carol").groups.values_list("name", flat=True)) == {
        "ml-team",
        "everybody",
    }
    provider.people["carol-1"]["groups"] = ["everybody"]
    sign_on(client)
    assert client.get(f"/projects/{cast.team_a.pk}").status_code == 404
    del provider.people["carol-1"]["groups"]
    sign_on(client)
    assert not User.objects.get(username="carol").groups.exists()


def test_groups_are_bounded_and_none_is_cut_to_another_ones_name(
    client: Client, cast: Cast, provider: Provider
) -> None:
    long = "g" * 151
    provider.people["carol-1"]["groups"] = [
        long,
        7,
        None,
        "",
        "  ",
        " admins",
        "admins ",
        "a\x00b",
        *(f"group-{number}" for number in range(300)),
    ]
    sign_on(client)
    names = set(User.objects.get(username="carol").groups.values_list("name", flat=True))
    assert names == {f"group-{number}" for number in range(192)}


def test_a_local_user_of_the_same_name_is_not_taken_over(
    client: Client, cast: Cast, provider: Provider
) -> None:
    provider.people["carol-1"] = {
        "preferred_username": "Alice",
        "email": "alice@example.com",
        "email_verified": True,
    }
    answer = sign_on(client)
    assert answer.status_code == 409
    assert "There is a user Alice of Muster already" in answer.content.decode()
    assert signed_in_as(client) == ""
    assert not SocialAccount.objects.exists()
    assert AuditEntry.objects.filter(
        event="sign-in", succeeded=False, text__contains="already"
    ).exists()


def test_a_name_of_other_letters_is_made_one_of_ours_and_none_is_refused(
    client: Client, cast: Cast, provider: Provider
) -> None:
    provider.people["carol-1"] = {
        "preferred_username": "EXAMPLE\\carol <b>ö</b>",
        "given_name": "a\x00b",
        "email": "a\x00@x",
    }
    sign_on(client)
    assert signed_in_as(client) == "EXAMPLE-carol-b-b"
    provider.people["carol-2"] = {
        "preferred_username": ["carol"],
        "email": "carol@example.com",
        "given_name": {"carol": True},
    }
    provider.who, other = "carol-2", Client()
    sign_on(other)
    assert signed_in_as(other) == "carol@example.com"
    assert User.objects.get(username="carol@example.com").first_name == ""
    provider.people = {"x": {}}
    provider.who = "x"
    answer = sign_on(Client())
    assert answer.status_code == 403
    assert "does not tell your user name" in answer.content.decode()


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"preferred_username": "Юрий"}, "Your user name at Example SSO, Юрий, cannot be one of"),
        ({"preferred_username": "x" * 151}, "at most 150 characters"),
        (
            {"email": "boss@example.com", "email_verified": False},
            "has not verified your email address",
        ),
        (
            {"email": "boss@example.com", "email_verified": "false"},
            "has not verified your email address",
        ),
        (
            {"email": "boss@example.com", "email_verified": "False"},
            "has not verified your email address",
        ),
        (
            {"email": "boss@example.com", "email_verified": None},
            "has not verified your email address",
        ),
        (
            {
                "preferred_username": "Юрий",
                "email": "boss@example.com",
                "email_verified": False,
            },
            "There is no verified email address to take instead",
        ),
    ],
)
def test_who_has_no_name_that_can_be_theirs_is_told_why(
    client: Client, cast: Cast, provider: Provider, claims: dict[str, object], text: str
) -> None:
    """An address that nobody has checked gives nobody the name of its owner."""
    provider.people["carol-1"] = claims
    answer = sign_on(client)
    assert answer.status_code == 403
    assert text in answer.content.decode()
    assert not User.objects.filter(username="boss@example.com").exists()


@pytest.mark.parametrize("verified", [{"email_verified": True}, {"email_verified": "true"}, {}])
def test_an_address_is_a_name_where_it_is_verified_or_nothing_is_said(
    client: Client, cast: Cast, provider: Provider, verified: dict[str, object]
) -> None:
    provider.people["carol-1"] = {"email": "carol@example.com", **verified}
    sign_on(client)
    assert signed_in_as(client) == "carol@example.com"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("{provider}/end", "{provider}/end?client_id=muster-console"),
        ("{provider}/end?policy=x", "{provider}/end?policy=x&amp;client_id=muster-console"),
        ("javascript:alert(1)", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_who_signs_out_may_sign_out_at_the_provider_too(
    client: Client, cast: Cast, provider: Provider, endpoint: object, url: str
) -> None:
    """Its session goes on, and lets whoever comes to the browser next in."""
    if isinstance(endpoint, str):
        endpoint = endpoint.format(provider=provider.url)
    provider.change_document = lambda document: document.update(end_session_endpoint=endpoint)
    sign_on(client)
    page = client.post("/sign-out").content.decode()
    assert signed_in_as(client) == ""
    assert "You may still be signed in at Example SSO" in page
    wanted = f'href="{url.format(provider=provider.url)}">Sign out at Example SSO'
    assert (wanted in page) == bool(url)
    assert ("Sign out at Example SSO" in page) == bool(url)
    assert "javascript:alert" not in page
    client.post("/sign-in", {"username": "bob", "password": PASSWORD})
    assert client.post("/sign-out").status_code == 302


def test_where_no_provider_is_set_any_more_signing_out_leads_to_none(
    client: Client, cast: Cast, provider: Provider, settings: LazySettings
) -> None:
    endpoint = f"{provider.url}/end"
    provider.change_document = lambda document: document.update(end_session_endpoint=endpoint)
    sign_on(client)
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"oidc_issuer": ""})
    assert client.post("/sign-out").headers["Location"] == "/sign-in"


def test_who_is_deactivated_stays_out(client: Client, cast: Cast, provider: Provider) -> None:
    sign_on(client)
    User.objects.filter(username="carol").update(is_active=False)
    other = Client()
    answer = sign_on(other)
    assert answer.status_code == 403
    assert "deactivated" in answer.content.decode()
    assert signed_in_as(other) == ""


def test_a_session_that_was_there_before_has_another_key_after(
    client: Client, cast: Cast, provider: Provider
) -> None:
    url = begin(client)
    before = client.cookies["muster_session"].value
    client.get(follow_provider(url))
    assert client.cookies["muster_session"].value != before


@pytest.mark.parametrize(
    "wanted",
    [
        "https://elsewhere.example/",
        "//elsewhere.example",
        "/\\elsewhere.example",
        "javascript:alert(1)",
        "",
    ],
)
def test_nobody_is_sent_to_a_page_that_is_not_ours(
    client: Client, cast: Cast, provider: Provider, wanted: str
) -> None:
    assert sign_on(client, wanted).headers["Location"] == "/workloads"


def test_who_has_no_password_here_gets_no_token_by_one(
    client: Client, cast: Cast, provider: Provider
) -> None:
    sign_on(client)
    for password in ("", "!", User.objects.get(username="carol").password):
        body = {"grantType": "password", "username": "carol", "password": password}
        assert client.post("/api/v1/token", body, content_type="application/json").status_code in (
            400,
            403,
        )
        assert (
            Client().post("/sign-in", {"username": "carol", "password": password}).status_code
            == 422
        )
    assert (
        client.post(
            "/account",
            {"present": "x", "new": "a whole new battery", "again": "a whole new battery"},
        ).status_code
        == 403
    )
    assert client.get("/account/second-factor").status_code == 403


def test_when_the_provider_is_down_the_page_says_so_and_passwords_work(
    client: Client, cast: Cast, settings: LazySettings
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"oidc_issuer": "http://127.0.0.1:1", "oidc_client_id": CLIENT}
    )
    assert client.get("/sign-in").status_code == 200
    answer = client.post("/sign-on", {"next": "/projects"})
    assert answer.status_code == 503
    assert "does not answer as it should" in answer.content.decode()
    assert client.post("/sign-in", {"username": "bob", "password": PASSWORD}).status_code == 302


def test_without_a_provider_there_is_nothing_of_it(client: Client, cast: Cast) -> None:
    assert "Continue with" not in client.get("/sign-in").content.decode()
    assert client.post("/sign-on").status_code == 409
    assert client.get("/sign-on/callback").status_code == 409


def test_addresses_of_allauth_are_not_there(client: Client, cast: Cast, provider: Provider) -> None:
    client.force_login(cast.bob)
    for path in (
        "/accounts/login/",
        "/accounts/signup/",
        "/oidc/oidc/login/",
        "/oidc/oidc/login/callback/",
        "/accounts/2fa/",
        "/accounts/email/",
    ):
        assert client.get(path).status_code == 404


def test_the_sign_in_page_offers_it_by_its_name(
    client: Client, cast: Cast, provider: Provider
) -> None:
    assert "Continue with Example SSO" in client.get("/sign-in").content.decode()
    assert client.get("/sign-on").status_code == 405


def test_a_local_user_connects_by_their_password_and_comes_in_either_way(
    client: Client, cast: Cast, provider: Provider
) -> None:
    provider.people["carol-1"] = {"preferred_username": "bob"}
    client.force_login(cast.bob)
    assert client.post("/account/sign-on/connect", {"present": "wrong"}).status_code == 422
    answer = client.post("/account/sign-on/connect", {"present": PASSWORD})
    assert (
        client.get(follow_provider(answer.headers["Refresh"].partition("url=")[2])).headers[
            "Location"
        ]
        == "/account"
    )
    other = Client()
    sign_on(other)
    assert signed_in_as(other) == "bob"
    assert other.post("/account/sign-on/disconnect", {"present": PASSWORD}).status_code == 302
    assert sign_on(Client()).status_code == 409


def test_an_identity_of_one_user_connects_with_no_other(
    client: Client, cast: Cast, provider: Provider
) -> None:
    sign_on(Client())
    client.force_login(cast.bob)
    answer = client.post("/account/sign-on/connect", {"present": PASSWORD})
    client.get(follow_provider(answer.headers["Refresh"].partition("url=")[2]))
    assert not SocialAccount.objects.filter(user=cast.bob).exists()
    assert "somebody else" in client.get("/account").content.decode()
    assert SocialAccount.objects.get().user.username == "carol"


def begin_connection(client: Client) -> str:
    """Return the address of ours that the provider sends the browser to."""
    answer = client.post("/account/sign-on/connect", {"present": PASSWORD})
    return follow_provider(answer.headers["Refresh"].partition("url=")[2])


def test_a_user_connects_with_one_identity_only(
    client: Client, cast: Cast, provider: Provider
) -> None:
    client.force_login(cast.bob)
    first = begin_connection(client)
    provider.people["dora-1"], provider.who = {"preferred_username": "dora"}, "dora-1"
    second = begin_connection(client)
    assert client.get(first).headers["Location"] == "/account"
    assert client.get(second).headers["Location"] == "/account"
    assert "Your user is connected already." in client.get("/account").content.decode()
    assert SocialAccount.objects.get(user=cast.bob).extra_data["sub"] == "carol-1"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["deactivated", "reset"])
def test_what_an_administrator_does_while_somebody_connects_is_not_undone(
    client: Client, provider: Provider, change: str
) -> None:
    """Whoever found out a password connects an identity of theirs, and the provider is slow."""
    cast = make_cast()
    client.force_login(cast.bob)
    back = begin_connection(client)

    def intervene(_: Claims) -> None:
        try:
            bob = User.objects.get(pk=cast.bob.pk)
            if change == "deactivated":
                user_actions.set_active(bob, False, cast.alice)
            else:
                user_actions.reset_password(bob, cast.alice)
        finally:
            connections.close_all()

    provider.change_user_info = intervene
    client.get(back)
    bob = User.objects.get(pk=cast.bob.pk)
    assert bob.is_active == (change == "reset")
    assert bob.check_password(PASSWORD) == (change == "deactivated")
    assert not SocialAccount.objects.exists()


def test_a_password_that_is_reset_ends_the_connection_that_it_made(
    client: Client, cast: Cast, provider: Provider
) -> None:
    client.force_login(cast.bob)
    assert client.get(begin_connection(client)).headers["Location"] == "/account"
    assert cast.bob.groups.exists()
    administrator = Client()
    administrator.force_login(cast.alice)
    assert "connection with single sign-on ends" in administrator.get("/users").content.decode()
    password = user_actions.reset_password(User.objects.get(pk=cast.bob.pk), cast.alice)
    provider.people["carol-1"]["preferred_username"] = "bob"
    refused = sign_on(Client())
    assert refused.status_code == 409
    assert "sign in with your password and connect the two" in refused.content.decode()
    assert not cast.bob.groups.exists()
    assert AuditEntry.objects.filter(
        entity_name="bob", subject="alice", text="Ended the connection with single sign-on."
    ).exists()
    assert Client().post("/sign-in", {"username": "bob", "password": password}).status_code == 302


def test_who_looks_as_somebody_connects_nobody_with_who_they_are(
    client: Client, cast: Cast, provider: Provider
) -> None:
    """Begun as oneself, brought to an end as another: they would have a second way in for good."""
    client.force_login(cast.alice)
    answer = client.post("/account/sign-on/connect", {"present": PASSWORD})
    back = follow_provider(answer.headers["Refresh"].partition("url=")[2])
    assert client.post(f"/users/{cast.bob.pk}/look-as").status_code == 302
    assert client.get(back).status_code == 403
    assert not SocialAccount.objects.exists()


def test_the_same_person_of_another_issuer_is_somebody_else(
    client: Client, cast: Cast, provider: Provider, settings: LazySettings
) -> None:
    sign_on(client)
    with Provider() as other:
        other.people, other.who = {"carol-1": {"preferred_username": "mallory2"}}, "carol-1"
        settings.OPTIONS = settings.OPTIONS.model_copy(update=other.options())
        sign_on(client)
    assert signed_in_as(client) == "mallory2"


def test_an_issuer_of_another_address_than_its_document_is_believed_where_that_is_named(
    client: Client, cast: Cast, provider: Provider, settings: LazySettings
) -> None:
    """So it is with Azure AD B2C, and with the first version of Entra ID's endpoints."""
    issuer, path = f"{provider.url}/8f3e-of-the-tenant/v2.0/", f"/tenant/b2c_1_in{WELL_KNOWN}"
    provider.change_claims = lambda claims: claims.update(iss=issuer)
    provider.answers[path] = json.dumps(provider.description() | {"issuer": issuer}).encode()
    document = f"{provider.url}{path}?p=b2c_1_in"
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"oidc_issuer": document})
    for _ in range(2):
        sign_on(client)
        assert signed_in_as(client) == "carol"
        client.post("/sign-out")
    assert accounts.is_connected(User.objects.get(username="carol"))
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"oidc_issuer": document.replace("/tenant/", "/other/")}
    )
    assert not accounts.is_connected(User.objects.get(username="carol"))
