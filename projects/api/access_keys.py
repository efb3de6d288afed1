"""`/api/v1/access-keys`: the user's own keys.

For administrators, everybody's: `/administration/access-keys`, `/users/{id}/access-keys`.
"""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import NotAllowed
from console.rest_bodies import parse_body
from projects import access, personal_keys, user_actions
from projects.api import access_bodies, bodies, schemas
from projects.api.base import MAX_ITEMS, ApiView, ListQuery, build_list_body, secret_response
from projects.api.idempotency import idempotent
from projects.models import PersonalKey, User
from projects.permissions import Entity, Verb

TAGS = ["access"]


class KeysView(ApiView):
    @extend_schema(
        operation_id="list_access_keys",
        description="Your own access keys.",
        responses={
            200: schemas.json_response(
                schemas.object_schema(["accessKeys"], accessKeys=schemas.array_schema(bodies.KEY))
            )
        }
        | schemas.error_responses(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        return Response(
            {
                "accessKeys": [
                    bodies.serialize_key(each) for each in personal_keys.list_keys(self.user)
                ]
            }
        )

    @extend_schema(
        operation_id="create_access_key",
        description=(
            "A key with which a program does what you may; its secret is told here only. A token "
            "got with a key makes no keys."
        ),
        request=schemas.body_content(access_bodies.KeyBody),
        responses={201: schemas.json_response(bodies.KEY)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=TAGS,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        _require_no_key_token(self.user)
        body = parse_body(access_bodies.KeyBody, request.data)
        created, secret = personal_keys.create_key(
            body.name, owner=self.user, expires_at=body.expires_at
        )
        return secret_response(bodies.serialize_key(created) | {"clientSecret": secret})


class KeyView(ApiView):
    @extend_schema(
        operation_id="get_access_key",
        description="One of your own access keys.",
        responses={200: schemas.json_response(bodies.KEY)} | schemas.error_responses(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(bodies.serialize_key(_get_key(self.user, pk)))

    @extend_schema(
        operation_id="delete_access_key",
        description="Its secret and the tokens got with it end now.",
        responses={200: schemas.json_response(schemas.DONE)} | schemas.error_responses(401, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        key = _get_key(self.user, pk)
        personal_keys.revoke_key(key, self.user)
        return Response({"code": 200, "message": f"Access key {key.name} is deleted."})


class KeySecretView(ApiView):
    @extend_schema(
        operation_id="rotate_access_key",
        description=(
            "A new secret, told here only. The present one, and the tokens got with it, end now. "
            "With a key's token only its own."
        ),
        request=None,
        responses={200: schemas.json_response(bodies.KEY)} | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        key = _get_key(self.user, pk)
        if key != self.user.personal_key:
            _require_no_key_token(self.user)
        return secret_response(
            bodies.serialize_key(key) | {"clientSecret": personal_keys.rotate_secret(key)}, 200
        )


class EverybodysKeysView(ApiView):
    @extend_schema(
        operation_id="list_everybodys_access_keys",
        description=(
            "Everybody's access keys, without their secrets, 500 where limit is not given. For "
            "administrators."
        ),
        parameters=[
            *schemas.paging_parameters(),
            schemas.query_parameter("clientId", schemas.TEXT, "The key with this client id only."),
            schemas.query_parameter(
                "createdBy", schemas.TEXT, "The keys of the user of this name only."
            ),
        ],
        responses={
            200: schemas.json_response(schemas.list_schema("accessKeys", bodies.ANYBODYS_KEY))
        }
        | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        query = ListQuery(request)
        conditions = {
            "client_id": query.text("clientId"),
            "user__username": query.text("createdBy"),
        }
        keys = PersonalKey.objects.filter(
            **{column: value for column, value in conditions.items() if value}
        )
        page, next_offset = query.page(
            keys.select_related("user").order_by("user__username", "name"), MAX_ITEMS
        )
        return Response(
            build_list_body(
                "accessKeys", [bodies.serialize_anybodys_key(each) for each in page], next_offset
            )
        )


class AnybodysKeyView(ApiView):
    @extend_schema(
        operation_id="delete_anybodys_access_key",
        description=(
            "An access key of anybody, and the tokens got with it, end now. For administrators."
        ),
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, access_key: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        key: PersonalKey = get_object_or_404(
            PersonalKey.objects.select_related("user"), pk=access_key
        )
        personal_keys.revoke_key(key, self.user)
        return Response(
            {"code": 200, "message": f"Access key {key.name} of {key.user} is deleted."}
        )


class UserKeysView(ApiView):
    @extend_schema(
        operation_id="delete_user_access_keys",
        description=(
            "All of somebody's access keys, and the tokens got with them, end now. They can make "
            "others. For administrators."
        ),
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        owner: User = get_object_or_404(user_actions.list_people(), pk=pk)
        ended = personal_keys.revoke_all_keys(owner, self.user)
        return Response(
            {"code": 200, "message": f"The access keys of {owner} have ended ({ended})."}
        )


def _require_no_key_token(user: User) -> None:
    """Refuse a token that was issued for an access key. Raises NotAllowed.

    Whoever finds a key that expires could otherwise make one that does not.
    """
    if user.personal_key is not None:
        raise NotAllowed(
            "A token that was got with an access key makes no keys. Sign in, and make it on the "
            "account page."
        )


def _get_key(user: User, pk: int) -> PersonalKey:
    key: PersonalKey = get_object_or_404(
        PersonalKey.objects.select_related("user"), pk=pk, user=user
    )
    return key
