"""The REST API through Django's test client: who calls, and the answer as JSON."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from projects import tokens
from projects.models import User
from tests.api.described import check_answer, check_request
from tests.cast import Cast

API = "/api/v1"


class Caller:
    """A caller with an access token, or without one."""

    root = API

    def __init__(self, user: User | None = None, token: str = "") -> None:
        self.client = Client(raise_request_exception=True)
        self.token = token or (tokens.issue_token(user)[0] if user else "")

    def __call__(
        self, method: str, path: str, body: Any = None, status: int = 200, **headers: str
    ) -> Any:
        """Return the answer's JSON, and check its status.

        A body that is bytes is sent as it is.
        """
        answer = self.raw(method, path, body, **headers)
        assert answer.status_code == status, (answer.status_code, answer.content[:2000])
        assert answer["Content-Type"] == "application/json"
        # A token is asked for by names in any case, which a schema cannot say.
        if status < 300 and isinstance(body, dict | list) and path != "/token":
            check_request(method, self.build_address(path), body)
        return json.loads(answer.content)

    def build_address(self, path: str) -> str:
        return path if path.startswith("/api/") else self.root + path

    def raw(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        given = {"authorization": f"Bearer {self.token}"} if self.token else {}
        address = self.build_address(path)
        answer = self.client.generic(
            method, address, data, "application/json", headers=given | headers
        )
        assert isinstance(answer, HttpResponse)
        if answer.get("Content-Type") == "application/json":
            check_answer(method, address, answer.status_code, json.loads(answer.content))
        return answer


def a_body(cast: Cast, name: str = "train1", **spec: Any) -> dict[str, Any]:
    """Return the body of a submission to team-a."""
    default_spec = {"image": "muster/allreduce", "distributedFramework": "PyTorch", "numWorkers": 2}
    return {
        "name": name,
        "projectId": str(cast.team_a.pk),
        "clusterId": str(cast.cluster.pk),
        "spec": default_spec | spec,
    }
