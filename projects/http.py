"""The request of somebody signed in."""

from console import http
from projects.models import User


class Request(http.Request):
    """LoginRequiredMiddleware, and for the API its authentication, see to it that there is a
    user.
    """

    user: User
