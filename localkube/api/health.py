"""The paths that are no resources: version, health, and the list of paths at the root."""

import platform
import sys

from localkube import errors
from localkube.api.http_messages import ApiCall, Response, json_response, text_response

CHECKS = ("ping", "log", "storage")
ROOT_PATHS = (
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)


def answer_version(version: str) -> Response:
    """Answer with the version of the API, by which clients decide.

    Major and minor are those of the API that is spoken; our own name is in the build part.
    """
    major, minor = version.removeprefix("v").split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return json_response(
        {
            "major": major,
            "minor": minor,
            "gitVersion": version,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{platform.python_version()}",
            "compiler": sys.implementation.name,
            "platform": f"linux/{machine}",
        }
    )


def answer_health(call: ApiCall) -> Response:
    """Answer `ok`, or with ?verbose a line per check. Single checks are below, as /readyz/ping."""
    if call.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed_error()
    name, *checks = call.parts
    if checks:
        if len(checks) > 1 or checks[0] not in CHECKS:
            raise errors.no_such_path_error()
        return text_response("ok")
    if not call.query.flag("verbose"):
        return text_response("ok")
    lines = [f"[+]{check} ok" for check in CHECKS]
    return text_response("\n".join([*lines, f"{name} check passed", ""]))


def answer_root() -> Response:
    return json_response({"paths": list(ROOT_PATHS)})
