"""A cluster seen through a proxy that writes down what RBAC would ask about each request: the verb,
the kind, the subresource.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from clusters.job_kinds import TRAINJOBS
from clusters.kube.access import ClusterAccess
from clusters.kube.resources import CLUSTERTRAININGRUNTIMES, Resource
from tests.clusters.kube.faults import Request
from tests.faults.proxy import Answer, Mishap, Passage, Proxy

Object = dict[str, Any]


class Right(NamedTuple):
    """What a rule of a role grants: rights know no versions."""

    group: str
    resource: str
    verb: str


_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[0-9a-z]+(?:/namespaces/[^/]+(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)
_OPEN = re.compile(
    r"/(version|api(/v1)?|apis(/[^/]+){0,2}|openapi/.*)|/apis/auth(orization|entication)\.k8s\.io/.*"
)
"""What every user who is signed in may ask: discovery, and about himself."""


def rights(request: Request) -> set[Right]:
    """What was needed for a request; nothing for what everybody may ask."""
    if _OPEN.fullmatch(request.path):
        return set()
    found = _PATH.fullmatch(request.path)
    assert found, request.path
    resource = found["plural"] + (f"/{found['sub']}" if found["sub"] else "")
    return {
        Right(found["group"] or "", resource, verb) for verb in _verbs(request, bool(found["name"]))
    }


def _verbs(request: Request, is_one: bool) -> Sequence[str]:
    if request.method == "GET":
        return (
            ["get"] if is_one else ["watch"] if request.query.get("watch") == "true" else ["list"]
        )
    if request.method == "PATCH":
        # Server-side apply of what is not there, or not any more, makes it, and has to be allowed
        # that.
        return ["patch", "create"] if "apply" in request.headers["content-type"] else ["patch"]
    return {
        "POST": ["create"],
        "PUT": ["update"],
        "DELETE": ["delete" if is_one else "deletecollection"],
    }[request.method]


class Recorder(Proxy):
    """Passes everything on. The kinds of Trainer v2, which the embedded cluster has not, it serves
    itself as far as a launch needs them.
    """

    def __init__(self, upstream: ClusterAccess, *, trainer: bool = True) -> None:
        self.upstream = upstream
        self._has_trainer = trainer
        self.used: set[Right] = set()
        self.refused: list[str] = []
        """What the cluster did not let us do."""
        self._trainjobs: dict[str, Object] = {}
        super().__init__(upstream)
        self.choose = self._recorded

    def _recorded(self, request: Request) -> Mishap:
        return (
            self._stream
            if request.query.get("watch") == "true" or request.query.get("follow") == "true"
            else self._whole
        )

    def _stream(self, passage: Passage) -> None:
        self._note(passage.request, 200)
        if self._is_trainer(passage.request):
            passage.exchange.head(200, "Transfer-Encoding: chunked")
            passage.exchange.silence()
        else:
            passage.pass_on()

    def _whole(self, passage: Passage) -> None:
        request = passage.request
        answer = self._trained(request) if self._is_trainer(request) else passage.ask()
        if self._has_trainer and request.path == "/apis":
            answer = _with_trainer(answer)
        self._note(request, answer.status)
        passage.reply(answer)

    def _note(self, request: Request, status: int) -> None:
        self.used |= rights(request)
        if status in (401, 403):
            self.refused.append(f"{request.method} {request.path}")

    def _is_trainer(self, request: Request) -> bool:
        return self._has_trainer and request.path.startswith(
            f"/apis/{TRAINJOBS.group}/{TRAINJOBS.version}/"
        )

    def _trained(self, request: Request) -> Answer:
        """What an API server says of TrainJobs: made, read, listed, and gone at once."""
        last = request.path.rpartition("/")[2]
        if last in (TRAINJOBS.plural, CLUSTERTRAININGRUNTIMES.plural):
            if request.method == "POST":
                made = json.loads(request.body)
                name = made["metadata"]["name"]
                made["metadata"] |= {
                    "uid": f"uid-of-{name}",
                    "resourceVersion": "1",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                }
                return self._trained_one(201, self._trainjobs.setdefault(name, made))
            items = list(self._trainjobs.values()) if last == TRAINJOBS.plural else []
            return self._trained_one(
                200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}
            )
        known = (
            self._trainjobs.pop(last, None)
            if request.method == "DELETE"
            else self._trainjobs.get(last)
        )
        missing = {
            "kind": "Status",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
            "details": {"name": last},
        }
        return self._trained_one(200, known) if known else self._trained_one(404, missing)

    @staticmethod
    def _trained_one(status: int, body: Object) -> Answer:
        return Answer(status, "application/json", json.dumps(body).encode())


def _with_trainer(answer: Answer) -> Answer:
    """Discovery's answer with the kinds of Trainer v2 in it."""
    body = json.loads(answer.body)
    verbs = ["create", "delete", "get", "list", "patch", "watch"]
    served = [
        {
            "resource": kind.plural,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "responseKind": {"kind": name},
            "verbs": verbs,
        }
        for kind, name in (
            (TRAINJOBS, "TrainJob"),
            (CLUSTERTRAININGRUNTIMES, "ClusterTrainingRuntime"),
        )
    ]
    body["items"].append(
        {
            "metadata": {"name": TRAINJOBS.group},
            "versions": [{"version": TRAINJOBS.version, "resources": served}],
        }
    )
    return Answer(answer.status, answer.type, json.dumps(body).encode())


def build_right(resource: Resource, verb: str, subresource: str = "") -> Right:
    """The same for an entry of a table."""
    return Right(
        resource.group, f"{resource.plural}/{subresource}" if subresource else resource.plural, verb
    )
