"""`/api/v1/token/device`: a token by a code that a signed-in person confirms."""

from typing import Annotated

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import RestBody, describe_field, parse_body
from projects import sign_in_requests, token_addresses, tokens
from projects.api import schemas
from projects.api.base import ApiView, secret_response


class DeviceBody(RestBody):
    """A program that asks for a code."""

    client_name: Annotated[
        str, describe_field("What the program is, and where: the person reads it.")
    ] = ""


class ClaimBody(RestBody):
    """A program that asks whether its code is confirmed."""

    device_code: str


DEVICE = schemas.object_schema(
    ["deviceCode", "userCode", "verificationUri", "expiresIn", "interval"],
    deviceCode=schemas.describe_schema(schemas.TEXT, "The secret that the token is taken with."),
    userCode=schemas.describe_schema(schemas.TEXT, "The code that a person confirms."),
    verificationUri=schemas.describe_schema(schemas.TEXT, "The page where they do."),
    verificationUriComplete=schemas.TEXT,
    expiresIn=schemas.describe_schema(schemas.INTEGER, "Seconds."),
    interval=schemas.describe_schema(schemas.INTEGER, "Seconds between two claims."),
)
CLAIMED = schemas.TOKEN | {
    "properties": {**schemas.TOKEN["properties"], "username": schemas.TEXT},
}


class DeviceView(ApiView):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="create_device_code",
        description=(
            "A one-time code. A signed-in person confirms it on a page; then the program takes a "
            "token for them."
        ),
        request=schemas.body_content(DeviceBody),
        responses={201: schemas.json_response(DEVICE)} | schemas.error_responses(400, 429),
        auth=[],
        tags=["token"],
    )
    def post(self, request: Request) -> Response:
        body = parse_body(DeviceBody, request.data or {})
        row, secret = sign_in_requests.create_request(body.client_name, request)
        page = request.build_absolute_uri(reverse("sign-in-program"))
        return secret_response(
            {
                "deviceCode": secret,
                "userCode": row.code,
                "verificationUri": page,
                "verificationUriComplete": f"{page}?code={row.code}",
                "expiresIn": int(sign_in_requests.LIFETIME.total_seconds()),
                "interval": sign_in_requests.POLL_SECONDS,
            }
        )


class ClaimView(ApiView):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="claim_device_token",
        description="The token of a code that is confirmed, once; 202 while nobody has decided.",
        request=schemas.body_content(ClaimBody),
        responses={
            200: schemas.json_response(CLAIMED),
            202: OpenApiResponse(schemas.DONE, "Nobody has decided yet."),
        }
        | schemas.error_responses(400, 403),
        auth=[],
        tags=["token"],
    )
    def post(self, request: Request) -> Response:
        body = parse_body(ClaimBody, request.data)
        user = sign_in_requests.claim_token_owner(body.device_code)
        if user is None:
            return Response({"code": 202, "message": "Nobody has decided yet."}, status=202)
        token_addresses.record_token_use(user)
        token, seconds = tokens.issue_token(user)
        return secret_response(
            {
                "accessToken": token,
                "tokenType": "Bearer",
                "expiresIn": seconds,
                "username": user.username,
            },
            200,
        )
