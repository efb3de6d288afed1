"""`GET /api/v1/me`: whose token it is."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console import VERSION
from projects.api import schemas
from projects.api.base import ApiView

CALLER = schemas.object_schema(
    ["id", "username", "kind", "serverVersion"],
    id=schemas.TEXT,
    username=schemas.TEXT,
    email=schemas.TEXT,
    kind=schemas.describe_schema(
        schemas.enum_schema("user", "service-account", "access-key"),
        "What signed in: a person, a service account, or a person's access key.",
    ),
    keyName=schemas.describe_schema(schemas.TEXT, "The name of the access key."),
    serverVersion=schemas.TEXT,
)


class MeView(ApiView):
    @extend_schema(
        operation_id="get_me",
        description="Whose token it is, and the server's version.",
        responses={200: schemas.json_response(CALLER)} | schemas.error_responses(401),
        tags=["access"],
    )
    def get(self, request: Request) -> Response:
        user, key = self.user, self.user.personal_key
        person = "user" if key is None else "access-key"
        return Response(
            {
                "id": str(user.pk),
                "username": user.username,
                "email": user.email,
                "kind": "service-account" if user.is_service else person,
                "keyName": "" if key is None else key.name,
                "serverVersion": VERSION,
            }
        )
