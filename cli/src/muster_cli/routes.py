"""Every route of the REST API that a command uses; `resources` has those of its table."""

from typing import NamedTuple


class Route(NamedTuple):
    """A method and a path of REST; names in braces stand for what is filled in."""

    method: str
    path: str


CREATE_TOKEN = Route("POST", "/api/v1/token")
CREATE_DEVICE_CODE = Route("POST", "/api/v1/token/device")
CLAIM_DEVICE_TOKEN = Route("POST", "/api/v1/token/device/claim")
GET_ME = Route("GET", "/api/v1/me")

LIST_WORKLOADS = Route("GET", "/api/v1/workloads")
COUNT_WORKLOADS = Route("GET", "/api/v1/workloads/count")
GET_WORKLOAD = Route("GET", "/api/v1/workloads/{workload_id}")
LIST_EVENTS = Route("GET", "/api/v1/workloads/{workload_id}/events")
LIST_HISTORY = Route("GET", "/api/v1/workloads/{workload_id}/history")
GET_TIMELINE = Route("GET", "/api/v1/workloads/{workload_id}/timeline")
GET_ALTERNATIVES = Route("GET", "/api/v1/workloads/{workload_id}/alternatives")
GET_FORECAST = Route("GET", "/api/v1/workloads/{workload_id}/forecast")
LIST_WORKLOAD_PODS = Route("GET", "/api/v1/workloads/{workload_id}/pods")
LIST_PODS = Route("GET", "/api/v1/workloads/pods")
GET_LOGS = Route("GET", "/api/v1/workloads/{workload_id}/pods/{pod_id}/logs")

GET_TIME_MACHINE = Route("GET", "/api/v1/time-machine")
LIST_USAGE = Route("GET", "/api/v1/usage")
LIST_NODES = Route("GET", "/api/v1/nodes")
LIST_PROJECTS = Route("GET", "/api/v1/org-unit/projects")
LIST_TEMPLATES = Route("GET", "/api/v1/workload-templates")
GET_TEMPLATE = Route("GET", "/api/v1/workload-templates/{template_id}")


class KindRoutes(NamedTuple):
    """The routes of distributed workloads, or of standard ones."""

    submit: Route
    preflight: Route
    get: Route
    delete: Route
    stop: Route
    run: Route


def _build_kind_routes(name: str) -> KindRoutes:
    many, one = f"/api/v1/workloads/{name}", f"/api/v1/workloads/{name}/{{workload_id}}"
    return KindRoutes(
        submit=Route("POST", many),
        preflight=Route("POST", f"{many}/preflight"),
        get=Route("GET", one),
        delete=Route("DELETE", one),
        stop=Route("POST", f"{one}/suspend"),
        run=Route("POST", f"{one}/resume"),
    )


DISTRIBUTED = _build_kind_routes("distributed")
STANDARD = _build_kind_routes("trainings")


def get_kind_routes(workload_type: str) -> KindRoutes:
    """Return the routes of a workload by the `type` that REST gives it."""
    return DISTRIBUTED if workload_type == "Distributed" else STANDARD


def list_routes() -> set[Route]:
    """Return all routes of this module."""
    own = {value for value in globals().values() if isinstance(value, Route)}
    return own | set(DISTRIBUTED) | set(STANDARD)
