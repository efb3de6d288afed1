"""`/api/v1/asset/...`: assets of every form that the API has, by the rules of the pages' forms."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, cast

from django.core.exceptions import NON_FIELD_ERRORS
from django.db import models
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.typed_forms import TypedForm, TypedValues
from environments import actions, kinds
from environments.api import bodies, late_changes, preconditions
from environments.api.asset_filters import FIELDS, PARAMETERS, filter_assets
from environments.api.compliance import CHECKED_KINDS, build_compliance_check
from environments.api.compliance import PARAMETERS as COMPLYING
from environments.api.preconditions import build_tagged_response
from environments.forms import AssetForm, build_defaults
from environments.kinds import AssetKind
from environments.models import Asset
from environments.rest_mapping import RestMapping, merge_typed
from environments.scope_choices import annotate_rows, list_scope_choices
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.permissions import Verb


class AssetsView(ApiView):
    """Lists the assets of one form, and creates new ones."""

    form: ClassVar[type[AssetForm]]

    @property
    def kind(self) -> AssetKind:
        return kinds.get_kind(self.form.model)

    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = filter_assets(_query_assets(self.kind, self.form, self), query, self.user)
        assets, following = query.page(filtering.order_rows(rows, query, FIELDS, ("name", "pk")))
        annotate_rows(self.kind, assets, self.user)
        comply = (
            build_compliance_check(query, self.user) if self.kind.key in CHECKED_KINDS else None
        )
        entries = [
            bodies.serialize_asset(self.kind, each, _serialize_uses(each))
            | (comply(each) if comply else {})
            for each in assets
        ]
        return Response(build_list_body("entries", entries, following))

    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, self.form.model.entity)
        body_values, _ = bodies.parse_asset(_get_rest(self.form), request.data)
        typed = merge_typed(build_defaults(self.form, ""), body_values)
        form = validate_form(
            self.form, typed, scopes=list_scope_choices(self.user, self.kind), by=self.user
        )
        asset = actions.create(self.form.model, form.values, scope=form.asset_scope, user=self.user)
        return build_tagged_response(_serialize_current(self, asset.pk), 202)


class KindView(ApiView):
    """Lists the assets of every form of a kind."""

    kind: ClassVar[AssetKind]

    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = filter_assets(actions.list_visible(self.kind.model, self.user), query, self.user)
        assets, following = query.page(filtering.order_rows(rows, query, FIELDS, ("name", "pk")))
        annotate_rows(self.kind, assets, self.user)
        return Response(
            build_list_body(
                "entries",
                [bodies.serialize_asset(self.kind, each, _serialize_uses(each)) for each in assets],
                following,
            )
        )


class AssetView(ApiView):
    """Shows, changes and deletes one asset of a form."""

    form: ClassVar[type[AssetForm]]

    @property
    def kind(self) -> AssetKind:
        return kinds.get_kind(self.form.model)

    def get(self, request: Request, key: uuid.UUID) -> Response:
        return build_tagged_response(_serialize_current(self, key))

    @repeat_stale
    def put(self, request: Request, key: uuid.UUID) -> Response:
        return self._change_asset(request, key, keeps=False)

    @repeat_stale
    def patch(self, request: Request, key: uuid.UUID) -> Response:
        return self._change_asset(request, key, keeps=True)

    def delete(self, request: Request, key: uuid.UUID) -> Response:
        asset = _get_asset(self, key)
        actions.require_change(asset, self.user, Verb.DELETE)
        expected = preconditions.require_match(request, self.kind, asset).narrow(
            ListQuery(request).integer("version", 0, 1, 2**31) or None
        )
        with late_changes.explain_late_change(self.kind, asset, expected.version, expected.status):
            actions.remove(asset, self.user, version=expected.version)
        return Response(
            {"code": 202, "message": f"The {self.kind.noun} {asset.name} was deleted."}, status=202
        )

    def _change_asset(self, request: Request, key: uuid.UUID, *, keeps: bool) -> Response:
        """Change the asset to what the body says.

        What the body does not say stays (`keeps`), or becomes what a new one has.
        """
        asset = _get_asset(self, key)
        actions.require_change(asset, self.user)
        expected = preconditions.require_match(request, self.kind, asset)
        body_values, version = bodies.parse_asset(_get_rest(self.form), request.data)
        stored = self.kind.build_typed(asset)
        start = (
            stored
            if keeps
            else build_defaults(self.form, str(asset.scope))
            | {"name": [asset.name]}
            | _select_secret_values(self.form, stored)
        )
        scopes = list_scope_choices(self.user, self.kind, asset)
        form = validate_form(
            self.form,
            merge_typed(start, body_values),
            scopes=scopes,
            by=self.user,
            asset=asset,
            changes=True,
        )
        expected = expected.narrow(version)
        with (
            late_changes.explain_late_change(self.kind, asset, expected.version, expected.status),
            follow_version(asset.version, expected.version) as edited_version,
        ):
            actions.change(
                asset, form.values, scope=form.asset_scope, user=self.user, version=edited_version
            )
        return build_tagged_response(_serialize_current(self, key), 202)


def validate_form(form: type[AssetForm], typed: TypedValues, **more: Any) -> AssetForm:
    """Return the form without problems. Raises Invalid that names the places in the body."""
    validated = form(typed, **more)
    if validated.validate():
        return validated
    rest, rows = _get_rest(form), validated.rows
    problems = list(
        _list_errors(
            validated, lambda name: rest.get_place(name) if name != NON_FIELD_ERRORS else ""
        )
    )
    for number, row in enumerate(rows.filled_rows if rows is not None else ()):
        prefix = f"{rows.name}.{number}" if rows is not None else ""
        problems += _list_errors(row, lambda name, at=prefix: rest.get_place(f"{at}.{name}"))  # type: ignore[misc]
    raise Invalid(_drop_repeated(problems))


def _list_errors(form: TypedForm, place: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    return ((place(name), str(text)) for name, texts in form.errors.items() for text in texts)


def _drop_repeated(problems: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Drop problems of the whole that also stand beside a field."""
    field_texts = {text for place, text in problems if place}
    return [
        (place or "spec", text)
        for place, text in dict.fromkeys(problems)
        if place or text not in field_texts
    ]


def _select_secret_values(form: type[AssetForm], was: TypedValues) -> TypedValues:
    """Return the typed values that stand for stored secrets: typed again, they keep them."""
    secret = tuple(part.field for part in _get_rest(form).parts if part.is_secret)
    return {name: values for name, values in was.items() if name.partition("-")[0] in secret}


def _get_rest(form: type[AssetForm]) -> RestMapping:
    assert form.rest is not None
    return form.rest


def _query_assets(kind: AssetKind, form: type[AssetForm], view: ApiView) -> "models.QuerySet[Any]":
    rows: models.QuerySet[Any] = actions.list_visible(kind.model, view.user)
    return rows.filter(kind=form.subtype) if kind.has_subtypes else rows


def _get_asset(view: AssetsView | AssetView, key: uuid.UUID) -> Asset:
    asset = _query_assets(view.kind, view.form, view).filter(pk=key).first()
    if asset is None:
        raise Http404(f"There is no such {view.kind.noun} among those that you may see.")
    return cast(Asset, asset)


def _serialize_current(view: AssetsView | AssetView, key: uuid.UUID) -> dict[str, Any]:
    asset = _get_asset(view, key)
    annotate_rows(view.kind, [asset], view.user)
    return bodies.serialize_asset(view.kind, asset, _serialize_uses(asset))


def _serialize_uses(asset: Any) -> Mapping[str, int]:
    return {
        "workloads": asset.workloads,
        "templates": asset.templates,
        "dataSources": asset.sources,
    }


def build_kind_view(kind: AssetKind, name: str) -> type[KindView]:
    """Build the view of all forms of a kind, with its OpenAPI description."""

    class Every(KindView):
        @extend_schema(
            operation_id=f"list_asset_{name}",
            description=(
                f"Every {kind.noun} that you may see; `meta.kind` says of which sort it is. "
                f"{kind.about}"
            ),
            parameters=[*schemas.list_parameters(FIELDS), *PARAMETERS],
            responses={
                200: schemas.json_response(
                    schemas.list_schema("entries", bodies.build_any_schema(kind))
                )
            }
            | schemas.error_responses(400, 401),
            tags=["assets"],
        )
        def get(self, request: Request) -> Response:
            return super().get(request)

    Every.kind = kind
    return Every


def build_form_views(form: type[AssetForm]) -> tuple[type[AssetsView], type[AssetView]]:
    """Build the two views of one form, with their OpenAPI descriptions."""
    rest, kind = _get_rest(form), kinds.get_kind(form.model)
    noun, name = f"{form.label} {kind.noun}".strip(), rest.name.replace("-", "_")
    one, body_type = bodies.build_asset_schema(kind, form), bodies.get_body_type(rest)
    change = schemas.body_content(body_type)
    success_responses = {202: schemas.json_response(one)}

    class Many(AssetsView):
        @extend_schema(
            operation_id=f"list_asset_{name}",
            description=f"The assets of the sort “{noun}” that you may see. {kind.about}",
            parameters=[
                *schemas.list_parameters(FIELDS),
                *PARAMETERS,
                *(COMPLYING if kind.key in CHECKED_KINDS else ()),
            ],
            responses={200: schemas.json_response(schemas.list_schema("entries", one))}
            | schemas.error_responses(400, 401),
            tags=["assets"],
        )
        def get(self, request: Request) -> Response:
            return super().get(request)

        @extend_schema(
            operation_id=f"create_asset_{name}",
            description=f"A new one of the sort “{noun}”.",
            parameters=[preconditions.TAG],
            request=schemas.body_content(body_type, "meta"),
            responses=success_responses | schemas.error_responses(400, 401, 403, 404, 409),
            tags=["assets"],
        )
        @idempotent
        def post(self, request: Request) -> Response:
            return super().post(request)

    class One(AssetView):
        @extend_schema(
            operation_id=f"get_asset_{name}",
            description=f"One of the sort “{noun}”. What is secret of it is not shown.",
            parameters=[preconditions.TAG],
            responses={200: schemas.json_response(one)} | schemas.error_responses(401, 404),
            tags=["assets"],
        )
        def get(self, request: Request, key: uuid.UUID) -> Response:
            return super().get(request, key)

        @extend_schema(
            operation_id=f"replace_asset_{name}",
            description=(
                "Change it to what the body says; what is not given is as in a new one, but name, "
                "scope and secret stay."
            ),
            request=change,
            parameters=[preconditions.PARAMETER, preconditions.TAG],
            responses=success_responses | schemas.error_responses(400, 401, 403, 404, 409, 412),
            tags=["assets"],
        )
        def put(self, request: Request, key: uuid.UUID) -> Response:
            return super().put(request, key)

        @extend_schema(
            operation_id=f"change_asset_{name}",
            description="Change what the body says; what is not given stays.",
            request=change,
            parameters=[preconditions.PARAMETER, preconditions.TAG],
            responses=success_responses | schemas.error_responses(400, 401, 403, 404, 409, 412),
            tags=["assets"],
        )
        def patch(self, request: Request, key: uuid.UUID) -> Response:
            return super().patch(request, key)

        @extend_schema(
            operation_id=f"delete_asset_{name}",
            description="Delete it. Refused while something needs it; the message names what.",
            parameters=[
                preconditions.PARAMETER,
                schemas.query_parameter(
                    "version", schemas.INTEGER, "Refused where it is not the asset's any more."
                ),
            ],
            responses={202: schemas.json_response(schemas.DONE)}
            | schemas.error_responses(400, 401, 403, 404, 409, 412),
            tags=["assets"],
        )
        def delete(self, request: Request, key: uuid.UUID) -> Response:
            return super().delete(request, key)

    for view in (Many, One):
        view.form = form
    return Many, One
