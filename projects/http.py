"""The type of a request from a signed-in user."""

from console import http
from projects.models import User


class Request(http.Request):
    """A request whose `user` is a User.

    SignInRedirectMiddleware, and the authentication of the API, guarantee it.
    """

    user: User
