"""A walk through the wizard as a browser without scripts does it.

Every form is sent back as it was shown, with what a person changed.
"""

from html.parser import HTMLParser
from typing import Any

from django.test import Client

from environments import builtin_assets
from environments.models import ComputeResource, Environment
from tests.cast import Cast
from workloads.models import Draft

Sent = dict[str, list[str]]


class _Form(HTMLParser):
    """The successful controls of the form with id `wizard`, as HTML defines them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Sent = {}
        self._inside = False
        self._template = 0
        self._fieldsets: list[bool] = []
        self._select = ""
        self._option: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "form":
            self._inside = given.get("id") == "wizard"
        self._template += tag == "template"
        if tag == "fieldset":
            self._fieldsets.append("disabled" in given)
        elif tag == "select":
            self._select = ""
        if not self._inside or self._template or "disabled" in given or any(self._fieldsets):
            return
        name = given.get("name") or ""
        if (
            tag == "input"
            and name
            and (given.get("type") not in ("radio", "checkbox") or "checked" in given)
        ):
            self.sent.setdefault(name, []).append(
                given.get("value") or ""
                if "value" in given or given.get("type") != "checkbox"
                else "on"
            )
        elif tag == "select":
            self._select, self._option = name, None
        elif tag == "option" and self._select and (self._option is None or "selected" in given):
            self._option = given.get("value") or ""
        elif tag == "textarea":
            self._area = ""
            self._select = name

    def handle_endtag(self, tag: str) -> None:
        self._template -= tag == "template"
        if tag == "fieldset":
            self._fieldsets.pop()
        if tag == "form":
            self._inside = False
        elif tag == "select" and self._select and self._inside and not self._template:
            self.sent.setdefault(self._select, []).append(self._option or "")
        elif tag == "textarea" and self._area is not None:
            self.sent.setdefault(self._select, []).append(self._area.removeprefix("\n"))
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area += data


def form_of(answer: Any) -> Sent:
    """Return what a browser would send back of the page's form, unchanged."""
    parser = _Form()
    parser.feed(answer.content.decode())
    return parser.sent


class Walk:
    """A person's walk through the wizard."""

    def __init__(self, cast: Cast, user: str = "bob", query: str = "") -> None:
        builtin_assets.ensure_builtin_assets()
        self.client = Client()
        self.client.force_login(getattr(cast, user))
        self.cast = cast
        self.page = self.client.get(f"/workloads/new{query}", follow=True)

    @property
    def draft(self) -> Draft:
        return Draft.objects.get(pk=self.page.request["PATH_INFO"].split("/")[3])

    @property
    def step(self) -> str:
        return str(self.page.request["PATH_INFO"].rsplit("/", 1)[1])

    @property
    def text(self) -> str:
        return str(self.page.content.decode())

    def see(self, step: str) -> "Walk":
        """Open a step by its address."""
        self.page = self.client.get(f"/workloads/new/{self.draft.pk}/{step}", follow=True)
        return self

    def send(self, **changes: str | list[str]) -> "Walk":
        """Change these fields of the shown form and press a button.

        `go`, `add` and so on name the button; without them none is pressed.
        """
        given = {
            name.replace("__", "-"): value if isinstance(value, list) else [value]
            for name, value in changes.items()
        }
        self.page = self.client.post(
            self.page.request["PATH_INFO"], form_of(self.page) | given, follow=True
        )
        return self

    def send_start(self, **changes: str) -> "Walk":
        """Send the first step with the walk's answers."""
        return self.send(**({"name": "train1", "architecture": "Distributed"} | changes))

    def send_setup(self, **changes: str | list[str]) -> "Walk":
        """Send the setup step with the walk's answers."""
        answers = {
            "environment_choice": key_of("allreduce"),
            "compute_choice": key_of("small-fraction"),
            "workers": "2",
        }
        return self.send(**(answers | changes))


def key_of(name: str) -> str:
    """Return the id of an asset."""
    model = ComputeResource if ComputeResource.objects.filter(name=name).exists() else Environment
    return str(model.objects.get(name=name).pk)
