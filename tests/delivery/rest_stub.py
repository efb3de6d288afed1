"""A server that answers as Muster does, and runs what is submitted as a process of this machine."""

import json
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TOKEN = "a-token-of-nobody"


class RestStub:
    """Takes one workload after the other; `bodies` has what was submitted."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.is_stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._output = b""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._build_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._request_count = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._end_process()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        match method, path.partition("?")[0].removeprefix("/api/v1").split("/")[1:]:
            case "GET", ["org-unit", "projects"]:
                return 200, {"projects": [{"id": 7, "name": "team-a", "clusterId": "c"}]}
            case "POST", ["workloads", "distributed"]:
                return self._submit(body)
            case "POST", ["workloads", "distributed", "w1", "suspend"]:
                self.is_stopped = True
                return 202, None
            case "GET", ["workloads", "w1"]:
                return 200, self._describe_workload()
            case "GET", ["workloads", "w1", "pods"]:
                return 200, {"pods": [{"name": "notebook-worker-0", "rank": 0}]}
        return 404, {"message": "There is no such thing."}

    def read_output(self) -> bytes:
        """Return what the workload has printed until it ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._output += self._process.stdout.read()
        self._process.wait()
        return self._output

    def _submit(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.bodies.append(body)
        self._request_count, self._output, self.is_stopped = 0, b"", False
        if body["spec"]["totalGpus"] == 3:
            detail = {"field": "spec.totalGpus", "message": "2 or 4 can be made."}
            return 400, {"message": "This cannot be submitted.", "details": [detail]}
        self._end_process()
        words = shlex.split(body["spec"]["args"])
        self._process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        made = {"workloadId": "w1", "name": f"{body['name']}-x1y2z3"}
        return 202, made | {"warnings": self.warnings}

    def _describe_workload(self) -> dict[str, Any]:
        assert self._process is not None
        self._request_count += 1
        if self._request_count <= 2:
            data = {"preparedUnits": 5 * self._request_count, "units": 10}
            return {"phase": "Initializing", "phaseMessage": "<b>", "dataDelivery": data}
        code = self._process.poll()
        phase = "Running" if code is None else "Failed" if code else "Completed"
        return {"phase": "Stopped" if self.is_stopped else phase, "phaseMessage": ""}

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _build_handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing: the output of the tests is not for it."""

            def do_GET(self) -> None:
                if "/logs" in self.path:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(stub.read_output())
                else:
                    self._answer()

            def do_POST(self) -> None:
                self._answer()

            def _answer(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers["Authorization"] == f"Bearer {TOKEN}":
                    body = json.loads(content or b"null")
                    status, answer = stub.answer(self.command, self.path, body)
                else:
                    status, answer = 401, {"message": "This token is not known."}
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

        return Handler
