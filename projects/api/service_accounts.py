"""`/api/v1/service-accounts`, formerly `/apps`: accounts for programs."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import parse_body
from projects import access, actions
from projects.api import access_bodies, bodies, filtering, schemas
from projects.api.base import ApiView, ListQuery, array_response, secret_response
from projects.api.idempotency import idempotent
from projects.models import ServiceAccount, User
from projects.permissions import Entity, Verb
from projects.scopes import TENANT

FIELDS = {
    "id": filtering.id_field("pk"),
    "name": filtering.text_field("name"),
    "clientId": filtering.text_field("client_id"),
    "enabled": filtering.flag_field("is_enabled"),
    "projectId": filtering.id_field("project_id"),
    "departmentId": filtering.id_field("department_id"),
    "clusterId": filtering.uuid_field("cluster_id"),
    "expiresAt": filtering.moment_field("expires_at"),
    "lastLogin": filtering.moment_field("last_used_at"),
    "createdBy": filtering.text_field("created_by__username"),
    "createdAt": filtering.moment_field("created_at"),
}
TAGS = ["access"]


class AccountsView(ApiView):
    @extend_schema(
        operation_id="list_service_accounts",
        description="The service accounts of the scopes in which you may see them.",
        parameters=schemas.list_parameters(FIELDS),
        responses={
            200: schemas.json_response(schemas.list_schema("serviceAccounts", bodies.ACCOUNT))
        }
        | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.VIEW, Entity.SERVICE_ACCOUNTS)
        query = ListQuery(request)
        accounts = filtering.filter_and_search(_list_accounts(self.user), query, FIELDS)
        return Response(
            filtering.serialize_page(
                accounts,
                query,
                FIELDS,
                ("name", "pk"),
                name="serviceAccounts",
                serialize=bodies.serialize_account,
            )
        )

    @extend_schema(
        operation_id="create_service_account",
        description=(
            "A service account, and its first access rule where roleId is given; its secret is "
            "told here only. Without scopeType it is the tenant's, for who may make it there."
        ),
        request=schemas.body_content(access_bodies.AccountBody),
        responses={201: schemas.json_response(bodies.ACCOUNT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS)
        body = parse_body(access_bodies.AccountBody, request.data)
        everywhere = access.is_permitted(self.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS, TENANT)
        scope = (
            TENANT
            if everywhere and body.scope_type is None
            else access_bodies.parse_scope(body.scope_type, body.scope_id)
        )
        role = "" if body.role_id is None else bodies.parse_role_key(str(body.role_id))
        created, secret = actions.create_service_account(
            scope, body.name, by=self.user, role=role, expires_at=body.expires_at
        )
        return secret_response(bodies.serialize_account(created) | {"clientSecret": secret})


@extend_schema_view(
    get=extend_schema(
        operation_id="list_apps",
        tags=TAGS,
        responses={200: schemas.json_response(schemas.array_schema(bodies.ACCOUNT))}
        | schemas.error_responses(400, 401, 403),
    ),
    post=extend_schema(operation_id="create_app"),
)
class AppsView(AccountsView):
    """The older name of service accounts, and their older shape: an array."""

    def get(self, request: Request) -> Response:
        body = super().get(request).data
        return array_response(body["serviceAccounts"], body.get("next"))


class AccountView(ApiView):
    @extend_schema(
        operation_id="get_service_account",
        description="One service account.",
        responses={200: schemas.json_response(bodies.ACCOUNT)} | schemas.error_responses(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(
            bodies.serialize_account(get_object_or_404(_list_accounts(self.user), pk=pk))
        )

    @extend_schema(
        operation_id="change_service_account",
        description=(
            "Enable or disable it. A disabled one gets no token and the tokens got with its secret "
            "stop; enabled again, those that have not expired go on."
        ),
        request=schemas.body_content(access_bodies.AccountChange),
        responses={200: schemas.json_response(bodies.ACCOUNT)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=TAGS,
    )
    def patch(self, request: Request, pk: int) -> Response:
        account: ServiceAccount = get_object_or_404(_list_accounts(self.user), pk=pk)
        access.require(self.user, Verb.EDIT, Entity.SERVICE_ACCOUNTS, account.scope)
        body = parse_body(access_bodies.AccountChange, request.data)
        actions.set_enabled(account, body.enabled, self.user)
        return Response(bodies.serialize_account(account))

    @extend_schema(
        operation_id="delete_service_account",
        description="Its secret and the tokens got with it end now.",
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        account: ServiceAccount = get_object_or_404(_list_accounts(self.user), pk=pk)
        actions.delete_service_account(account, self.user)
        return Response({"code": 200, "message": f"Service account {account.name} is deleted."})


class AccountSecretView(ApiView):
    @extend_schema(
        operation_id="rotate_service_account",
        description=(
            "A new secret, told here only. The present one, and the tokens got with it, end now."
        ),
        request=None,
        responses={200: schemas.json_response(bodies.ACCOUNT)}
        | schemas.error_responses(401, 403, 404),
        tags=TAGS,
    )
    def post(self, request: Request, pk: int) -> Response:
        account: ServiceAccount = get_object_or_404(_list_accounts(self.user), pk=pk)
        secret = actions.rotate_secret(account, self.user)
        return secret_response(bodies.serialize_account(account) | {"clientSecret": secret}, 200)


@extend_schema_view(
    get=extend_schema(operation_id="get_app"),
    patch=extend_schema(operation_id="change_app"),
    delete=extend_schema(operation_id="delete_app"),
)
class AppView(AccountView):
    """The same under the older name."""


@extend_schema_view(post=extend_schema(operation_id="rotate_app"))
class AppSecretView(AccountSecretView):
    """The same under the older name."""


def _list_accounts(user: User) -> Any:
    return ServiceAccount.objects.visible_to(user).with_scope().select_related("user", "created_by")
