"""The addresses of this room: the same two for every form of asset that the API has."""

from collections.abc import Iterator

from django.urls import URLPattern, path

from environments.api.views import views_of
from environments.kinds import KINDS


def _addresses() -> Iterator[URLPattern]:
    for kind in KINDS:
        for form in kind.forms.values():
            if form.rest is None:
                continue
            many, one = views_of(form)
            yield path(f"asset/{form.rest.path}", many.as_view(), name=f"api-asset-{form.rest.name}")
            yield path(f"asset/{form.rest.path}/<uuid:key>", one.as_view(), name=f"api-asset-{form.rest.name}-one")


urlpatterns = list(_addresses())
