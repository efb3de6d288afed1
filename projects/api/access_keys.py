"""`/api/v1/access-keys`: one's own keys. For administrators everybody's:
`/administration/access-keys`, `/users/{id}/access-keys`.
"""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import NotAllowed
from projects import access, people, personal
from projects.api import bodies, schemas
from projects.api.base import MOST, ApiView, Asked, listed, once
from projects.api.bodies import Body
from projects.models import PersonalKey, User
from projects.permissions import Entity, Verb

TAGS = ["access"]


class KeysView(ApiView):
    @extend_schema(
        operation_id="list_access_keys",
        description="Your own access keys.",
        responses={
            200: schemas.answer(schemas.obj(["accessKeys"], accessKeys=schemas.array(bodies.KEY)))
        }
        | schemas.errors(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        return Response({"accessKeys": [bodies.key(each) for each in personal.of(self.user)]})

    @extend_schema(
        operation_id="create_access_key",
        description=(
            "A key with which a program does what you may; its secret is told here only. A token "
            "got with a key makes no keys."
        ),
        request=schemas.content(bodies.KEY_REQUEST),
        responses={201: schemas.answer(bodies.KEY)} | schemas.errors(400, 401, 403, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        _not_by_key(self.user)
        body = Body(request.data)
        made, secret = personal.create(body.text("name"), of=self.user, expires_at=body.life())
        return once(bodies.key(made) | {"clientSecret": secret})


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
        personal.revoke(found, self.user)
        return Response({"code": 200, "message": f"Access key {found.name} is deleted."})


class KeySecretView(ApiView):
    @extend_schema(
        operation_id="rotate_access_key",
        description=(
            "A new secret, told here only. The present one, and the tokens got with it, end now. "
            "With a key's token only its own."
        ),
        request=None,
        responses={200: schemas.answer(bodies.KEY)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        found = _key(self.user, pk)
        if found != self.user.personal_key:
            _not_by_key(self.user)
        return once(bodies.key(found) | {"clientSecret": personal.rotate(found)}, 200)


class EverybodysKeysView(ApiView):
    @extend_schema(
        operation_id="list_everybodys_access_keys",
        description=(
            "Everybody's access keys, without their secrets, 500 where limit is not given. For "
            "administrators."
        ),
        parameters=[
            *schemas.paging(),
            schemas.parameter("clientId", schemas.TEXT, "The key with this client id only."),
            schemas.parameter("createdBy", schemas.TEXT, "The keys of the user of this name only."),
        ],
        responses={200: schemas.answer(schemas.items("accessKeys", bodies.ANYBODYS_KEY))}
        | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        asked = Asked(request)
        wanted = {"client_id": asked.text("clientId"), "user__username": asked.text("createdBy")}
        keys = PersonalKey.objects.filter(
            **{column: value for column, value in wanted.items() if value}
        )
        found, following = asked.page(
            keys.select_related("user").order_by("user__username", "name"), MOST
        )
        return Response(
            listed("accessKeys", [bodies.anybodys_key(each) for each in found], following)
        )


class AnybodysKeyView(ApiView):
    @extend_schema(
        operation_id="delete_anybodys_access_key",
        description=(
            "An access key of anybody, and the tokens got with it, end now. For administrators."
        ),
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, access_key: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        found: PersonalKey = get_object_or_404(
            PersonalKey.objects.select_related("user"), pk=access_key
        )
        personal.revoke(found, self.user)
        return Response(
            {"code": 200, "message": f"Access key {found.name} of {found.user} is deleted."}
        )


class UserKeysView(ApiView):
    @extend_schema(
        operation_id="delete_user_access_keys",
        description=(
            "All of somebody's access keys, and the tokens got with them, end now. They can make "
            "others. For administrators."
        ),
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        access.require(self.user, Verb.EDIT, Entity.USERS)
        found: User = get_object_or_404(people.everybody(), pk=pk)
        ended = personal.revoke_all(found, self.user)
        return Response(
            {"code": 200, "message": f"The access keys of {found} have ended ({ended})."}
        )


def _not_by_key(user: User) -> None:
    """Who finds a key that ends could make another one that does not."""
    if user.personal_key is not None:
        raise NotAllowed(
            "A token that was got with an access key makes no keys. Sign in, and make it on the "
            "account page."
        )


def _key(user: User, pk: int) -> PersonalKey:
    found: PersonalKey = get_object_or_404(
        PersonalKey.objects.select_related("user"), pk=pk, user=user
    )
    return found
