"""Access tokens of the REST API."""

from rest_framework.authentication import BaseAuthentication


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer <token>`."""

    def authenticate(self, request: object) -> None:
        return None
