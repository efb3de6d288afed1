"""`/api/v1/users`, `/service-accounts` and `/access-keys`: who gets in, and with what."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Clash, Invalid, NotAllowed
from projects import access, actions, people, personal, sessions
from projects.api import bodies, filtering, schemas
from projects.api.base import MOST, ApiView, Asked, array
from projects.api.bodies import Body
from projects.forms import USER_NAME
from projects.models import PersonalKey, ServiceAccount, User
from projects.permissions import Entity, Verb
from projects.scopes import TENANT

USER_FIELDS = {
    "id": filtering.identity("pk"),
    "username": filtering.text("username"),
    "email": filtering.text("email"),
    "isActive": filtering.flag("is_active"),
    "createdAt": filtering.moment("date_joined"),
}
ACCOUNT_FIELDS = {
    "id": filtering.identity("pk"),
    "name": filtering.text("name"),
    "clientId": filtering.text("client_id"),
    "createdAt": filtering.moment("created_at"),
}
USER_SEARCHED = ("username", "email")
TAGS = ["access"]


USER_REQUEST = schemas.obj(
    username=schemas.said(schemas.TEXT, "Their email address where it is not given."),
    email=schemas.said(schemas.TEXT, "One of the two has to be given."),
    resetPassword=schemas.said(schemas.FLAG, "Can only be true: a temporary password has to be changed at the first sign-in."),
    notify=schemas.said(schemas.FLAG, "Can only be false: Muster sends no mail."),
)


class UsersView(ApiView):
    @extend_schema(
        operation_id="list_users",
        description="Everybody who can sign in, 500 where limit is not given. For administrators. The answer is an array.",
        parameters=schemas.list_parameters(USER_FIELDS),
        responses={200: schemas.answer(schemas.array(bodies.USER))} | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        asked = Asked(request)
        users = filtering.matching(people.everybody(), asked, USER_FIELDS, USER_SEARCHED)
        found, following = asked.page(filtering.ordered(users, asked, USER_FIELDS, ("username",)), MOST)
        return array([bodies.user(each) for each in found], following)

    @extend_schema(
        operation_id="create_user",
        description="A new local user with a temporary password, which is told here only. What they may do is for access rules to say.",
        request=schemas.content(USER_REQUEST),
        responses={201: schemas.answer(bodies.USER)} | schemas.errors(400, 401, 403, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.USERS)
        body = Body(request.data)
        email = body.text("email", otherwise="", most=254)
        name = body.text("username", otherwise=email or None, most=150)
        if body.flag("resetPassword") is False:
            raise Invalid(
                [("resetPassword", "resetPassword can only be true: a temporary password has to be changed at the first sign-in.")]
            )
        if body.flag("notify"):
            raise Invalid(
                [("notify", "notify can only be false: Muster sends no mail. The answer has the password, to be told to the user.")]
            )
        for field, value, check in (("username", name, USER_NAME), ("email", email, validate_email)):
            try:
                if value:
                    check(value)
            except ValidationError as error:
                raise Invalid([(field, " ".join(error.messages))]) from None
        if User.objects.filter(username__iexact=name).exists():
            raise Clash("There is a user of this name already. Choose another name.", field="username")
        user = User(username=name, email=email)
        password = people.create_user(user, self.user)
        return _once(bodies.user(user) | _told(password))


class UsersCountView(ApiView):
    @extend_schema(
        operation_id="count_users",
        description="How many users there are of what the list's filterBy and search ask for. For administrators.",
        parameters=schemas.filters(USER_FIELDS),
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        return Response({"count": filtering.matching(people.everybody(), Asked(request), USER_FIELDS, USER_SEARCHED).count()})


class UserPasswordView(ApiView):
    @extend_schema(
        operation_id="reset_user_password",
        description="A new temporary password, told here only. The user's sessions end, as the old password does. For administrators.",
        request=None,
        responses={200: schemas.answer(bodies.USER)} | schemas.errors(400, 401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        found = get_object_or_404(people.everybody(), pk=pk)
        password = people.reset_password(found, self.user)
        return _once(bodies.user(found) | _told(password), 200)


class UserLogoutView(ApiView):
    @extend_schema(
        operation_id="logout_user",
        description="End the user's sessions in browsers. Their access keys stay. For administrators.",
        request=None,
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        found = get_object_or_404(people.everybody(), pk=pk)
        sessions.end_all_of(found, self.user)
        return Response({"code": 200, "message": f"The sessions of {found} have ended."})


class UserView(ApiView):
    @extend_schema(
        operation_id="get_user",
        description="One user. For administrators.",
        responses={200: schemas.answer(bodies.USER)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        return Response(bodies.user(get_object_or_404(people.everybody(), pk=pk)))

    @extend_schema(
        operation_id="change_user",
        description="Let a user in, or keep them out (isActive); nothing else of them is changed here. For administrators.",
        request=schemas.content(schemas.obj(["isActive"], isActive=schemas.FLAG)),
        responses={200: schemas.answer(bodies.USER)} | schemas.errors(400, 401, 403, 404),
        tags=TAGS,
    )
    def patch(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        user = get_object_or_404(people.everybody(), pk=pk)
        active = Body(request.data).flag("isActive")
        if active is None:
            raise Invalid([("isActive", "isActive must be true or false.")])
        people.set_active(user, active, self.user)
        return Response(bodies.user(user))


class AccountsView(ApiView):
    @extend_schema(
        operation_id="list_service_accounts",
        description="The service accounts of the scopes in which you may see them.",
        parameters=schemas.list_parameters(ACCOUNT_FIELDS),
        responses={200: schemas.answer(schemas.items("serviceAccounts", bodies.ACCOUNT))} | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.VIEW, Entity.SERVICE_ACCOUNTS)
        asked = Asked(request)
        accounts = filtering.matching(_accounts(self.user), asked, ACCOUNT_FIELDS)
        return Response(filtering.paged(accounts, asked, ACCOUNT_FIELDS, ("name", "pk"), name="serviceAccounts", shown=bodies.account))

    @extend_schema(
        operation_id="create_service_account",
        description="A service account, and its first access rule where roleId is given; its secret is told here only. Without "
        "scopeType it is the tenant's, for who may make it there.",
        request=schemas.content(bodies.ACCOUNT_REQUEST),
        responses={201: schemas.answer(bodies.ACCOUNT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS)
        body = Body(request.data)
        everywhere = access.may(self.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS, TENANT)
        scope = TENANT if everywhere and not body.has("scopeType") else body.scope()
        role = body.role() if body.has("roleId") else ""
        made, secret = actions.create_service_account(scope, body.text("name"), by=self.user, role=role, expires_at=body.life())
        return _once(bodies.account(made) | {"clientSecret": secret})


@extend_schema_view(
    get=extend_schema(
        operation_id="list_apps", responses={200: schemas.answer(schemas.array(bodies.ACCOUNT))} | schemas.errors(400, 401, 403)
    ),
    post=extend_schema(operation_id="create_app"),
)
class AppsView(AccountsView):
    """The older name of service accounts, and their older shape: an array."""

    def get(self, request: Request) -> Response:
        told = super().get(request).data
        return array(told["serviceAccounts"], told.get("next"))


class AccountView(ApiView):
    @extend_schema(
        operation_id="get_service_account",
        description="One service account.",
        responses={200: schemas.answer(bodies.ACCOUNT)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(bodies.account(get_object_or_404(_accounts(self.user), pk=pk)))

    @extend_schema(
        operation_id="delete_service_account",
        description="Its secret and the tokens got with it end now.",
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        found: ServiceAccount = get_object_or_404(_accounts(self.user), pk=pk)
        actions.delete_service_account(found, self.user)
        return Response({"code": 200, "message": f"Service account {found.name} is deleted."})


class AccountSecretView(ApiView):
    @extend_schema(
        operation_id="rotate_service_account",
        description="A new secret, told here only. The present one, and the tokens got with it, end now.",
        request=None,
        responses={200: schemas.answer(bodies.ACCOUNT)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        found: ServiceAccount = get_object_or_404(_accounts(self.user), pk=pk)
        secret = actions.rotate_secret(found, self.user)
        return _once(bodies.account(found) | {"clientSecret": secret}, 200)


@extend_schema_view(get=extend_schema(operation_id="get_app"), delete=extend_schema(operation_id="delete_app"))
class AppView(AccountView):
    """The same under the older name."""


@extend_schema_view(post=extend_schema(operation_id="rotate_app"))
class AppSecretView(AccountSecretView):
    """The same under the older name."""


class KeysView(ApiView):
    @extend_schema(
        operation_id="list_access_keys",
        description="Your own access keys.",
        responses={200: schemas.answer(schemas.obj(["accessKeys"], accessKeys=schemas.array(bodies.KEY)))} | schemas.errors(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        return Response({"accessKeys": [bodies.key(each) for each in personal.of(self.user)]})

    @extend_schema(
        operation_id="create_access_key",
        description="A key with which a program does what you may; its secret is told here only. A token got with a key makes no keys.",
        request=schemas.content(bodies.KEY_REQUEST),
        responses={201: schemas.answer(bodies.KEY)} | schemas.errors(400, 401, 403, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        _not_by_key(self.user)
        body = Body(request.data)
        made, secret = personal.create(body.text("name"), of=self.user, expires_at=body.life())
        return _once(bodies.key(made) | {"clientSecret": secret})


class KeyView(ApiView):
    @extend_schema(
        operation_id="get_access_key",
        description="One of your own access keys.",
        responses={200: schemas.answer(bodies.KEY)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(bodies.key(_key(self.user, pk)))

    @extend_schema(
        operation_id="delete_access_key",
        description="Its secret and the tokens got with it end now.",
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = _key(self.user, pk)
        personal.revoke(found)
        return Response({"code": 200, "message": f"Access key {found.name} is deleted."})


class KeySecretView(ApiView):
    @extend_schema(
        operation_id="rotate_access_key",
        description="A new secret, told here only. The present one, and the tokens got with it, end now. With a key's token only its own.",
        request=None,
        responses={200: schemas.answer(bodies.KEY)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        found = _key(self.user, pk)
        if found != self.user.personal_key:
            _not_by_key(self.user)
        return _once(bodies.key(found) | {"clientSecret": personal.rotate(found)}, 200)


def _not_by_key(user: User) -> None:
    """Who finds a key that ends could make another one that does not."""
    if user.personal_key is not None:
        raise NotAllowed("A token that was got with an access key makes no keys. Sign in, and make it on the account page.")


def _key(user: User, pk: int) -> PersonalKey:
    found: PersonalKey = get_object_or_404(PersonalKey.objects.select_related("user"), pk=pk, user=user)
    return found


def _accounts(user: User) -> Any:
    return ServiceAccount.objects.visible_to(user).with_scope().select_related("user", "created_by")


def _told(password: str) -> dict[str, str]:
    """A temporary password, by our name and by the one that clients of Run:ai's API know."""
    return {"temporaryPassword": password, "tempPassword": password}


def _once(body: dict[str, Any], status: int = 201) -> Response:
    """An answer with a secret, which nothing on its way keeps."""
    answer = Response(body, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
