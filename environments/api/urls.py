"""The addresses of assets in the REST API.

Two for every form of asset that the API has, and one for all forms of a kind with several.
"""

from collections.abc import Iterator

from django.urls import URLPattern, path

from environments.api.asset_names import build_name_view
from environments.api.views import build_form_views, build_kind_view
from environments.kinds import KINDS
from projects.api.name_availability import PATH as NAME_PATH


def _addresses() -> Iterator[URLPattern]:
    for kind in KINDS:
        above = {
            form.rest.path.partition("/")[0]
            for form in kind.forms.values()
            if form.rest and "/" in form.rest.path
        }
        for name in sorted(above):
            yield path(
                f"asset/{name}", build_kind_view(kind, name).as_view(), name=f"api-asset-{name}"
            )
        for form in kind.forms.values():
            if form.rest is None:
                continue
            many, one = build_form_views(form)
            names = build_name_view(kind, f"asset_{form.rest.name.replace('-', '_')}")
            yield path(
                f"asset/{form.rest.path}/{NAME_PATH}",
                names.as_view(),
                name=f"api-asset-{form.rest.name}-name",
            )
            yield path(
                f"asset/{form.rest.path}", many.as_view(), name=f"api-asset-{form.rest.name}"
            )
            yield path(
                f"asset/{form.rest.path}/<uuid:key>",
                one.as_view(),
                name=f"api-asset-{form.rest.name}-one",
            )


urlpatterns = list(_addresses())
