"""A fast test client, for tests that request every address as everybody."""

from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from django.test.client import ClientHandler

from projects.models import User
from tests.console.address_world import World


class Browser(RequestFactory):
    """Requests through all middleware and the views, and their bare answers.

    It keeps cookies as Django's `Client` does. A `Client` loads the middleware anew, which reads
    every static file, and copies the context of every template. This does neither; it follows no
    redirect, and an exception is a 500.
    """

    def __init__(self) -> None:
        super().__init__()
        self._handler = ClientHandler(enforce_csrf_checks=False)

    def request(self, **request: Any) -> HttpResponseBase:  # type: ignore[override]
        # The types of Django leave out what a factory of requests gives its subclasses.
        environ = self._base_environ(**request)  # type: ignore[attr-defined]
        answer = self._handler(environ)
        self.cookies.update(answer.cookies)
        return answer

    def sign_in_as(self, world: World, user: User) -> "Browser":
        """Use nothing but this person's session from now on."""
        self.cookies.clear()
        self.cookies[settings.SESSION_COOKIE_NAME] = world.cookies[user.pk]
        return self

    def ask(self, world: World, user: User, method: str, url: str, **more: Any) -> int:
        """Return the status for a person on a page, and for their token on the API.

        The answer is read to its end.
        """
        self.sign_in_as(world, user)
        if url.startswith("/api/"):
            self.cookies.clear()
            more["headers"] = {"authorization": f"Bearer {world.tokens[user.pk]}"}
        answer: Any = getattr(self, method)(url, **more)
        b"".join(answer)
        status: int = answer.status_code
        return status


BROWSER = Browser()
"""One for all tests: the middleware is loaded once."""
