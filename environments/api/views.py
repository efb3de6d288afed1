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
from console.typed import Typed, TypedForm
from environments import actions, kinds
from environments.api import bodies, late
from environments.api.complying import KINDS, complying
from environments.api.complying import PARAMETERS as COMPLYING
from environments.api.narrowing import FIELDS, PARAMETERS, asked_for
from environments.choosing import choices, prepare
from environments.forms import AssetForm, defaults_of
from environments.kinds import Kind
from environments.models import Asset
from environments.rest import Rest, merged
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, Asked, listed
from projects.permissions import Verb


class AssetsView(ApiView):
    """Those of one form: listed, and new ones made."""

    form: ClassVar[type[AssetForm]]

    @property
    def kind(self) -> Kind:
        return kinds.of(self.form.model)

    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = asked_for(_rows(self.kind, self.form, self), asked)
        found, following = asked.page(filtering.ordered(rows, asked, FIELDS, ("name", "pk")))
        prepare(self.kind, found, self.user)
        comply = complying(asked, self.user) if self.kind.key in KINDS else None
        entries = [
            bodies.shown(self.kind, each, _used(each)) | (comply(each) if comply else {})
            for each in found
        ]
        return Response(listed("entries", entries, following))

    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, self.form.model.entity)
        given, _ = bodies.read(_rest(self.form), request.data)
        typed = merged(defaults_of(self.form, ""), given)
        form = judged(self.form, typed, scopes=choices(self.user, self.kind), by=self.user)
        made = actions.create(self.form.model, form.values, scope=form.asset_scope, by=self.user)
        return Response(_told(self, made.pk), status=202)


class KindView(ApiView):
    """Those of every form of a kind."""

    kind: ClassVar[Kind]

    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = asked_for(actions.seen(self.kind.model, self.user), asked)
        found, following = asked.page(filtering.ordered(rows, asked, FIELDS, ("name", "pk")))
        prepare(self.kind, found, self.user)
        return Response(
            listed(
                "entries", [bodies.shown(self.kind, each, _used(each)) for each in found], following
            )
        )


class AssetView(ApiView):
    """One of a form: shown, changed, deleted."""

    form: ClassVar[type[AssetForm]]

    @property
    def kind(self) -> Kind:
        return kinds.of(self.form.model)

    def get(self, request: Request, key: uuid.UUID) -> Response:
        return Response(_told(self, key))

    def put(self, request: Request, key: uuid.UUID) -> Response:
        return self._change(request, key, keeps=False)

    def patch(self, request: Request, key: uuid.UUID) -> Response:
        return self._change(request, key, keeps=True)

    def delete(self, request: Request, key: uuid.UUID) -> Response:
        asset = _reach(self, key)
        version = Asked(request).whole("version", 0, 1, 2**31) or None
        with late.told(self.kind, asset, version):
            actions.remove(asset, self.user, version=version)
        return Response(
            {"code": 202, "message": f"The {self.kind.noun} {asset.name} was deleted."}, status=202
        )

    def _change(self, request: Request, key: uuid.UUID, *, keeps: bool) -> Response:
        """Give it what the body says; what that does not say stays (`keeps`), or becomes what a new
        one has.
        """
        asset = _reach(self, key)
        actions.require_change(asset, self.user)
        given, version = bodies.read(_rest(self.form), request.data)
        was = self.kind.typed(asset)
        start = (
            was
            if keeps
            else defaults_of(self.form, str(asset.scope))
            | {"name": [asset.name]}
            | _secret(self.form, was)
        )
        scopes = choices(self.user, self.kind, asset)
        form = judged(
            self.form, merged(start, given), scopes=scopes, by=self.user, asset=asset, changes=True
        )
        with late.told(self.kind, asset, version):
            actions.change(
                asset, form.values, scope=form.asset_scope, by=self.user, version=version
            )
        return Response(_told(self, key), status=202)


def judged(form: type[AssetForm], typed: Typed, **more: Any) -> AssetForm:
    """The form with nothing wrong. Raises Invalid that names the places of the body."""
    found = form(typed, **more)
    if found.judged():
        return found
    rest, rows = _rest(form), found.rows
    problems = list(
        _told_of(found, lambda name: rest.place_of(name) if name != NON_FIELD_ERRORS else "")
    )
    for number, row in enumerate(rows.filled if rows is not None else ()):
        listed = f"{rows.name}.{number}" if rows is not None else ""
        problems += _told_of(row, lambda name, at=listed: rest.place_of(f"{at}.{name}"))  # type: ignore[misc]
    raise Invalid(_once(problems))


def _told_of(form: TypedForm, place: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    return ((place(name), str(text)) for name, texts in form.errors.items() for text in texts)


def _once(problems: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What stands beside a field needs not to be said of the whole as well."""
    beside = {text for place, text in problems if place}
    return [
        (place or "spec", text)
        for place, text in dict.fromkeys(problems)
        if place or text not in beside
    ]


def _secret(form: type[AssetForm], was: Typed) -> Typed:
    """What stands for what is stored and never shown: as typed, it keeps it."""
    secret = tuple(part.field for part in _rest(form).parts if part.is_secret)
    return {name: values for name, values in was.items() if name.partition("-")[0] in secret}


def _rest(form: type[AssetForm]) -> Rest:
    assert form.rest is not None
    return form.rest


def _rows(kind: Kind, form: type[AssetForm], view: ApiView) -> "models.QuerySet[Any]":
    rows: models.QuerySet[Any] = actions.seen(kind.model, view.user)
    return rows.filter(kind=form.subtype) if kind.has_subtypes else rows


def _reach(view: AssetsView | AssetView, key: uuid.UUID) -> Asset:
    found = _rows(view.kind, view.form, view).filter(pk=key).first()
    if found is None:
        raise Http404(f"There is no such {view.kind.noun} among those that you may see.")
    return cast(Asset, found)


def _told(view: AssetsView | AssetView, key: uuid.UUID) -> dict[str, Any]:
    found = _reach(view, key)
    prepare(view.kind, [found], view.user)
    return bodies.shown(view.kind, found, _used(found))


def _used(asset: Any) -> Mapping[str, int]:
    return {
        "workloads": asset.workloads,
        "templates": asset.templates,
        "dataSources": asset.sources,
    }


def view_of(kind: Kind, name: str) -> type[KindView]:
    """The view of all forms of a kind, described."""

    class Every(KindView):
        @extend_schema(
            operation_id=f"list_asset_{name}",
            description=(
                f"Every {kind.noun} that you may see; `meta.kind` says of which sort it is. "
                f"{kind.about}"
            ),
            parameters=[*schemas.list_parameters(FIELDS), *PARAMETERS],
            responses={200: schemas.answer(schemas.items("entries", bodies.any_schema(kind)))}
            | schemas.errors(400, 401),
            tags=["assets"],
        )
        def get(self, request: Request) -> Response:
            return super().get(request)

    Every.kind = kind
    return Every


def views_of(form: type[AssetForm]) -> tuple[type[AssetsView], type[AssetView]]:
    """The views of one form, described."""
    rest, kind = _rest(form), kinds.of(form.model)
    noun, name = f"{form.label} {kind.noun}".strip(), rest.name.replace("-", "_")
    one, asking = bodies.schema(kind, form), schemas.content(bodies.asking(form))
    done = {202: schemas.answer(one)}

    class Many(AssetsView):
        @extend_schema(
            operation_id=f"list_asset_{name}",
            description=f"The assets of the sort “{noun}” that you may see. {kind.about}",
            parameters=[
                *schemas.list_parameters(FIELDS),
                *PARAMETERS,
                *(COMPLYING if kind.key in KINDS else ()),
            ],
            responses={200: schemas.answer(schemas.items("entries", one))}
            | schemas.errors(400, 401),
            tags=["assets"],
        )
        def get(self, request: Request) -> Response:
            return super().get(request)

        @extend_schema(
            operation_id=f"create_asset_{name}",
            description=f"A new one of the sort “{noun}”.",
            request=asking,
            responses=done | schemas.errors(400, 401, 403, 404, 409),
            tags=["assets"],
        )
        def post(self, request: Request) -> Response:
            return super().post(request)

    class One(AssetView):
        @extend_schema(
            operation_id=f"get_asset_{name}",
            description=f"One of the sort “{noun}”. What is secret of it is not shown.",
            responses={200: schemas.answer(one)} | schemas.errors(401, 404),
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
            request=asking,
            responses=done | schemas.errors(400, 401, 403, 404, 409),
            tags=["assets"],
        )
        def put(self, request: Request, key: uuid.UUID) -> Response:
            return super().put(request, key)

        @extend_schema(
            operation_id=f"change_asset_{name}",
            description="Change what the body says; what is not given stays.",
            request=asking,
            responses=done | schemas.errors(400, 401, 403, 404, 409),
            tags=["assets"],
        )
        def patch(self, request: Request, key: uuid.UUID) -> Response:
            return super().patch(request, key)

        @extend_schema(
            operation_id=f"delete_asset_{name}",
            description="Delete it. Refused while something needs it; the message names what.",
            parameters=[
                schemas.parameter(
                    "version", schemas.WHOLE, "Refused where it is not the asset's any more."
                )
            ],
            responses={202: schemas.answer(schemas.DONE)} | schemas.errors(400, 401, 403, 404, 409),
            tags=["assets"],
        )
        def delete(self, request: Request, key: uuid.UUID) -> Response:
            return super().delete(request, key)

    for view in (Many, One):
        view.form = form
    return Many, One
