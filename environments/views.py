"""The tables of environments and compute resources, and their forms."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from console.errors import Clash, NotAllowed
from console.http import page
from console.typed import Typed, typed, with_row, without_row
from environments import actions
from environments.forms import EVERYBODY, FORMS, AssetForm, EnvironmentForm, defaults, typed_asset
from environments.models import Asset, ComputeResource, Environment
from projects.access import Action, actionable
from projects.http import Request

PAGE = 100


_ENVIRONMENT = ("Environment", "Description", "Image", "Workload architecture", "Scope", "Created by", "Last updated")
_COMPUTE = ("Compute resource", "Description", "GPU devices", "Of each device", "CPU", "CPU memory", "Scope", "Created by", "Last updated")


@dataclass(frozen=True)
class Kind:
    """One kind of asset, as addresses, forms and pages call it."""

    form: str
    model: type[Asset]
    path: str
    name: str
    """Of the address of its table."""
    url: str
    """How the names of its other addresses begin."""
    noun: str
    icon: str
    columns: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.noun[0].upper()}{self.noun[1:]}s"


ENVIRONMENTS = Kind("environment", Environment, "environments", "environments", "environment", "environment", "container", _ENVIRONMENT)
COMPUTE = Kind(
    "compute", ComputeResource, "compute-resources", "compute-resources", "compute-resource", "compute resource", "cpu", _COMPUTE
)


@require_GET
def table(request: Request, kind: Kind) -> HttpResponse:
    """Everybody's and the reader's own, by name: searched, and a page at a time."""
    search = request.GET.get("search", "").replace("\x00", "").strip()[:100]
    rows = kind.model.objects.visible_to(request.user).select_related("project", "created_by").order_by("name", "id")
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(description__icontains=search))
    name, _, key = request.GET.get("after", "").replace("\x00", "").rpartition("~")
    if name and (last := _uuid(key)) is not None:
        rows = rows.filter(Q(name__gt=name) | Q(name=name, id__gt=last))
    found = list(rows[: PAGE + 1])
    launching = _launching(request)
    shown = [_row(each, actions.may_change(each, request.user, launching)) for each in found[:PAGE]]
    more = f"{found[PAGE - 1].name}~{found[PAGE - 1].pk}" if len(found) > PAGE else ""
    context = {
        "kind": kind,
        "rows": shown,
        "search": search,
        "more": more,
        "after": name,
        "may_create": bool(launching) or request.user.is_superuser,
    }
    return render(request, f"environments/{kind.form}_table.html", context)


def _row(asset: Asset, may_change: bool) -> dict[str, Any]:
    portion = asset.gpu_portion if isinstance(asset, ComputeResource) else None
    return {"asset": asset, "may_change": may_change, "percent": "" if portion is None else f"{float(portion * 100):g}"}


@require_http_methods(["GET", "POST"])
def new(request: Request, kind: Kind) -> HttpResponse:
    """A new one."""
    scopes = _scopes(request)
    _require_scope(request, scopes)
    first = EVERYBODY if request.user.is_superuser else str(scopes[0].pk) if scopes else ""
    return _form(request, kind, None, defaults(kind.form, first))


@require_http_methods(["GET", "POST"])
def edit(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """Change one; workloads made from it stay as they are."""
    asset = _reach(request, kind, key)
    actions.require_change(asset, request.user)
    return _form(request, kind, asset, typed_asset(asset))


@require_http_methods(["GET", "POST"])
def copy(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """A new one that starts as another is."""
    asset = _reach(request, kind, key)
    projects = _scopes(request)
    _require_scope(request, projects)
    scopes = [str(project.pk) for project in projects]
    allowed = [EVERYBODY, *scopes] if request.user.is_superuser else scopes
    was = typed_asset(asset)
    scope = was["scope"] if was["scope"][0] in allowed else allowed[:1]
    return _form(request, kind, None, was | {"name": [f"{asset.name}-copy"[:63]], "scope": scope})


@require_http_methods(["GET", "POST"])
def delete(request: Request, kind: Kind, key: uuid.UUID) -> HttpResponse:
    """Ask, and then delete."""
    asset = _reach(request, kind, key)
    actions.require_change(asset, request.user)
    if request.method == "POST":
        actions.remove(asset, request.user)
        messages.success(request, f"The {kind.noun} {asset.name} was deleted.")
        return redirect(kind.name)
    return page(request, "environments/delete.html", "environments/_delete.html", {"kind": kind, "asset": asset})


def _form(request: Request, kind: Kind, asset: Asset | None, start: Typed) -> HttpResponse:
    """The form as it starts, or as it was sent: with a row more or less, with errors beside their fields, or saved."""
    what = typed(request.POST, ("add", "remove")) if request.method == "POST" else start
    form = _bound(request, kind, what)
    if isinstance(form, EnvironmentForm) and "add" in request.POST:
        return _show(request, kind, asset, _bound(request, kind, with_row(what, form.variables)))
    if "remove" in request.POST:
        return _show(request, kind, asset, _bound(request, kind, without_row(what, request.POST["remove"])))
    if request.method != "POST":
        return _show(request, kind, asset, form)
    if form.judged() and _saved(request, asset, form):
        messages.success(request, f"The {kind.noun} {form.values['name']} was saved.")
        return redirect(kind.name)
    return _show(request, kind, asset, form, status=422)


def _saved(request: Request, asset: Asset | None, form: AssetForm) -> bool:
    try:
        if asset is None:
            actions.create(form.model, form.values, project=form.project, by=request.user)
        else:
            actions.change(asset, form.values, project=form.project, by=request.user)
    except Clash as clash:
        form.blame(clash.field, clash.text)
        return False
    return True


def _show(request: Request, kind: Kind, asset: Asset | None, form: AssetForm, status: int = 200) -> HttpResponse:
    return render(request, f"environments/{kind.form}_form.html", {"kind": kind, "asset": asset, "form": form}, status=status)


def _bound(request: Request, kind: Kind, data: Typed) -> AssetForm:
    return FORMS[kind.form](data, scopes=_scopes(request), everybody=request.user.is_superuser)


def _require_scope(request: Request, scopes: list[Any]) -> None:
    if not scopes and not request.user.is_superuser:
        raise NotAllowed(
            "Assets belong to a project, and you may launch workloads in none. Ask the administrator of one to make you its member."
        )


def _scopes(request: Request) -> list[Any]:
    return list(actionable(request.user, Action.SUBMIT).order_by("name"))


def _launching(request: Request) -> frozenset[int]:
    return frozenset(actionable(request.user, Action.SUBMIT).values_list("pk", flat=True))


def _reach(request: Request, kind: Kind, key: uuid.UUID) -> Asset:
    asset = actions.reach(kind.model, key, request.user)
    if asset is None:
        raise Http404(f"There is no such {kind.noun} among those that you may see.")
    return asset


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
