"""`/api/v1/users`: the people who sign in."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Clash, Invalid
from console.rest_bodies import parse_body
from projects import access, sessions, user_actions
from projects.api import access_bodies, bodies, filtering, schemas
from projects.api.base import MAX_ITEMS, ApiView, ListQuery, array_response, secret_response
from projects.api.idempotency import idempotent
from projects.forms import USER_NAME
from projects.models import User
from projects.permissions import Entity, Verb

FIELDS = {
    "id": filtering.id_field("pk"),
    "username": filtering.text_field("username"),
    "email": filtering.text_field("email"),
    "isActive": filtering.flag_field("is_active"),
    "mustChangePassword": filtering.flag_field("must_change_password"),
    "lastLogin": filtering.moment_field("last_login"),
    "createdAt": filtering.moment_field("date_joined"),
}
SEARCH_COLUMNS = ("username", "email")
TAGS = ["access"]


class UsersView(ApiView):
    @extend_schema(
        operation_id="list_users",
        description=(
            "Everybody who can sign in, 500 where limit is not given. For administrators. The "
            "answer is an array."
        ),
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.array_schema(bodies.USER))}
        | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        query = ListQuery(request)
        users = filtering.filter_and_search(
            user_actions.list_people(), query, FIELDS, SEARCH_COLUMNS
        )
        page, next_offset = query.page(
            filtering.order_rows(users, query, FIELDS, ("username",)), MAX_ITEMS
        )
        return array_response([bodies.serialize_user(each) for each in page], next_offset)

    @extend_schema(
        operation_id="create_user",
        description=(
            "A new local user with a temporary password, which is told here only. What they may "
            "do is for access rules to say."
        ),
        request=schemas.body_content(access_bodies.UserBody),
        responses={201: schemas.json_response(bodies.USER)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=TAGS,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.USERS)
        body = access_bodies.parse_new_user(request.data)
        name = body.username or body.email
        for field, value, check in (
            ("username", name, USER_NAME),
            ("email", body.email, validate_email),
        ):
            try:
                if value:
                    check(value)
            except ValidationError as error:
                raise Invalid([(field, " ".join(error.messages))]) from None
        if User.objects.filter(username__iexact=name).exists():
            raise Clash(
                "There is a user of this name already. Choose another name.", field="username"
            )
        user = User(username=name, email=body.email)
        password = user_actions.create_user(user, self.user)
        return secret_response(bodies.serialize_user(user) | _serialize_password(password))


class UsersCountView(ApiView):
    @extend_schema(
        operation_id="count_users",
        description=(
            "How many users there are of what the list's filterBy and search ask for. For "
            "administrators."
        ),
        parameters=schemas.filter_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.COUNT)}
        | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        return Response(
            {
                "count": filtering.filter_and_search(
                    user_actions.list_people(), ListQuery(request), FIELDS, SEARCH_COLUMNS
                ).count()
            }
        )


class UserPasswordView(ApiView):
    @extend_schema(
        operation_id="reset_user_password",
        description=(
            "A new temporary password, told here only. The user's sessions, access keys and "
            "connection with single sign-on end, as the old password does. For administrators."
        ),
        request=None,
        responses={200: schemas.json_response(bodies.USER)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        user = get_object_or_404(user_actions.list_people(), pk=pk)
        password = user_actions.reset_password(user, self.user)
        return secret_response(bodies.serialize_user(user) | _serialize_password(password), 200)


class UserLogoutView(ApiView):
    @extend_schema(
        operation_id="logout_user",
        description=(
            "End the user's sessions in browsers and their refresh tokens. Their access keys stay, "
            "and access tokens until they expire. For administrators."
        ),
        request=None,
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        user = get_object_or_404(user_actions.list_people(), pk=pk)
        sessions.sign_out_everywhere(user, self.user)
        return Response({"code": 200, "message": f"The sessions of {user} have ended."})


class UserView(ApiView):
    @extend_schema(
        operation_id="get_user",
        description="One user. For administrators.",
        responses={200: schemas.json_response(bodies.USER)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.VIEW, Entity.USERS)
        return Response(bodies.serialize_user(get_object_or_404(user_actions.list_people(), pk=pk)))

    @extend_schema(
        operation_id="change_user",
        description=(
            "Let a user in, or keep them out (isActive); nothing else of them is changed here. "
            "For administrators."
        ),
        request=schemas.body_content(access_bodies.UserChange),
        responses={200: schemas.json_response(bodies.USER)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=TAGS,
    )
    def patch(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        user = get_object_or_404(user_actions.list_people(), pk=pk)
        change = parse_body(access_bodies.UserChange, request.data)
        user_actions.set_active(user, change.is_active, self.user)
        return Response(bodies.serialize_user(user))


def _serialize_password(password: str) -> dict[str, str]:
    """Return a temporary password under our name and under Run:ai's."""
    return {"temporaryPassword": password, "tempPassword": password}
