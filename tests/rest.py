"""A program that uses Muster's REST API over HTTP, as anybody's would."""

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Body = dict[str, Any]

COMPUTE = {
    "cpuCoreRequest": 0.05,
    "gpuRequestType": "portion",
    "gpuPortionRequest": 0.05,
    "cpuMemoryRequest": "20M",
}
"""So little that many run at once on the embedded cluster."""


def _from_json(body: bytes) -> Any:
    return json.loads(body or b"null")


class Refused(Exception):
    """The API said no: its status and its body."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:1000]}")
        self.status = status


class Client:
    """Signed in. A request whose answer was lost on the way is made again, as every program has
    to.
    """

    def __init__(
        self, url: str, password: str, patience: float = 90.0, username: str = "admin"
    ) -> None:
        self.url = url
        self.patience = patience
        self._headers = {"Content-Type": "application/json"}
        self.token: str = self.ask(
            "POST", "/token", {"grantType": "password", "username": username, "password": password}
        )["accessToken"]
        self._headers["Authorization"] = f"Bearer {self.token}"

    def ask(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        read: Callable[[bytes], Any] = _from_json,
    ) -> Any:
        """What `read` makes of the answer. Raises Refused, and the connection's error when it lasts
        longer than the patience.
        """
        until = time.monotonic() + self.patience
        data = None if body is None else json.dumps(body).encode()
        while True:
            request = urllib.request.Request(
                f"{self.url}/api/v1{path}", data, self._headers, method=method
            )
            try:
                with urllib.request.urlopen(request, timeout=180) as answer:
                    return read(answer.read())
            except urllib.error.HTTPError as error:
                raise Refused(error.code, error.read().decode(errors="replace")) from None
            except (OSError, http.client.HTTPException):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)


class Program(Client):
    """A client on the project team-a."""

    def __init__(
        self, url: str, password: str, patience: float = 90.0, username: str = "admin"
    ) -> None:
        super().__init__(url, password, patience, username)
        project = next(
            each
            for each in self.ask("GET", "/org-unit/projects")["projects"]
            if each["name"] == "team-a"
        )
        self.project = str(project["id"])
        self.cluster = str(self.ask("GET", "/clusters")[0]["uuid"])

    def submit(self, name: str, *, workers: int = 1, **spec: Any) -> str:
        """The id of a distributed workload; of the one that is there when an answer was lost and
        this is the second try.
        """
        whole = {
            "image": "muster/allreduce",
            "numWorkers": workers,
            "distributedFramework": "PyTorch",
            "compute": COMPUTE,
        } | spec
        body = {"name": name, "projectId": self.project, "clusterId": self.cluster, "spec": whole}
        try:
            return str(self.ask("POST", "/workloads/distributed", body)["workloadId"])
        except Refused as refusal:
            if refusal.status != 409:
                raise
            return str(self.listed()[name]["id"])

    def suspend(self, workload_id: str) -> None:
        self.ask("POST", f"/workloads/distributed/{workload_id}/suspend")

    def resume(self, workload_id: str) -> None:
        self.ask("POST", f"/workloads/distributed/{workload_id}/resume")

    def delete(self, workload_id: str) -> None:
        self.ask("DELETE", f"/workloads/distributed/{workload_id}")

    def workload(self, workload_id: str) -> Body:
        return dict(self.ask("GET", f"/workloads/{workload_id}"))

    def phase(self, workload_id: str) -> str:
        return str(self.workload(workload_id)["phase"])

    def log(self, workload_id: str, pod: str) -> str:
        """What a pod wrote, as it is kept."""
        return str(self.ask("GET", f"/workloads/{workload_id}/pods/{pod}/logs", read=bytes.decode))

    def listed(self, **query: str) -> dict[str, Body]:
        """The workloads by name."""
        filters = "".join(f"&{name}={value}" for name, value in query.items())
        return {
            each["name"]: each
            for each in self.ask("GET", f"/workloads?limit=500{filters}")["workloads"]
        }


class Reader:
    """Somebody with a browser that keeps cookies and runs no scripts."""

    def __init__(self, url: str, password: str, username: str = "admin") -> None:
        self.url = url
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        token = (
            self.page("/sign-in")
            .partition('name="csrfmiddlewaretoken" value="')[2]
            .partition('"')[0]
        )
        form = urllib.parse.urlencode(
            {"csrfmiddlewaretoken": token, "username": username, "password": password}
        )
        self._browser.open(f"{url}/sign-in", form.encode(), timeout=180).read()

    def post(self, path: str) -> None:
        """Press a button. Raises HTTPError for any other status than success."""
        token = (
            self.page("/workloads").partition('name="csrf-token" content="')[2].partition('"')[0]
        )
        form = urllib.parse.urlencode({"csrfmiddlewaretoken": token})
        self._browser.open(f"{self.url}{path}", form.encode(), timeout=180).close()

    def send(self, path: str, fields: Mapping[str, Sequence[str]]) -> tuple[str, str]:
        """Send a form as it was filled in; the path and the HTML of the page that it leads to.

        Raises Refused with the page that says what is wrong.
        """
        form = urllib.parse.urlencode(fields, doseq=True)
        try:
            with self._browser.open(f"{self.url}{path}", form.encode(), timeout=180) as answer:
                return urllib.parse.urlsplit(answer.url).path, answer.read().decode()
        except urllib.error.HTTPError as error:
            wrong = re.findall(r'_error">.*', error.read().decode(errors="replace"))
            raise Refused(error.code, " ".join(wrong)) from None

    def open(self, path: str) -> Any:
        """The answer, to read while it lasts. Raises HTTPError for any status but success."""
        return self._browser.open(f"{self.url}{path}", timeout=180)

    def page(self, path: str) -> str:
        """The page's HTML. Raises HTTPError for any other status than success."""
        with self.open(path) as answer:
            text: str = answer.read().decode()
            return text
