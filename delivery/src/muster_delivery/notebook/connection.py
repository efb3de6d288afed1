"""REST with the person's own token: out of variables, or where `muster login` keeps it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from muster_delivery.notebook.errors import NotebookError

TIMEOUT_SECONDS = 60.0
LARGEST_ANSWER = 16 << 20
LARGEST_FILE = 4 << 20
LONGEST_LINE = 1 << 16
RUN_HEADER = "X-Log-Run"
OVERLOADED = 429
"""The status with which a server asks to come later."""
SIGN_IN = "Sign in with `muster login ADDRESS`, or set MUSTER_SERVER and MUSTER_TOKEN."


class RefusedByServer(NotebookError):
    """The server's own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(NotebookError):
    """The server did not answer, or cannot just now."""


class SilentAnswer(Unreachable):
    """The server answered, and nothing further came for long."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes an answer that sends elsewhere for a refusal: the token is for one server."""

    def redirect_request(self, *arguments: object) -> None:
        """Return None: go nowhere."""


class RestConnection:
    """Requests to one Muster as one person. The token is never shown."""

    def __init__(self, server: str, token: str, *, project: str = "", ca_file: str = "") -> None:
        self.server = server.rstrip("/")
        self.project = project
        self._token = token
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self.server.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=_trust(ca_file)))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"RestConnection({self.server!r})"

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the JSON of an answer. Raises RefusedByServer and Unreachable."""
        with self._open(method, path, body, query) as answer:
            try:
                content = answer.read(LARGEST_ANSWER + 1)
                _check_end(answer)
            except (OSError, http.client.HTTPException) as error:
                raise self._describe(error) from None
        try:
            return json.loads(content or b"null")
        except (ValueError, RecursionError):
            raise NotebookError(f"{self.server} answered with something that is no JSON.") from None

    def stream_lines(
        self,
        path: str,
        query: Mapping[str, str],
        on_run: Callable[[int | None], None] = lambda run: None,
    ) -> Iterator[str]:
        """Yield the lines of an answer while they come.

        Before them, `on_run` is called with the run of the container whose log it is. Raises as
        `call` does, and SilentAnswer.
        """
        with self._open("GET", path, None, query) as answer:
            on_run(_parse_run(answer.headers.get(RUN_HEADER) or ""))
            while True:
                try:
                    line = answer.readline(LONGEST_LINE)
                    if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                        # The beginning of a line is none: it comes whole with the next answer.
                        _check_end(answer)
                # Before Python 3.10 it is another class than TimeoutError.
                except socket.timeout:
                    raise SilentAnswer(f"{self.server} says nothing further.") from None
                except (OSError, http.client.HTTPException) as error:
                    raise self._describe(error) from None
                if not line:
                    return
                yield line.decode(errors="replace").rstrip("\r\n")

    def _open(self, method: str, path: str, body: object, query: Mapping[str, str] | None) -> Any:
        address = f"{self.server}/api/v1{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        # The address is the person's own configuration, of http or https.
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310
        try:
            return self._opener.open(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            raise self._describe_refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._describe(error) from None

    def _describe_refusal(self, error: urllib.error.HTTPError) -> NotebookError:
        if 300 <= error.code < 400:
            error.close()
            return RefusedByServer(
                error.code,
                f"{self.server} sends on to {error.headers.get('Location')}, and the token is sent "
                "to no other address. Sign in at the address that Muster has.",
            )
        refusal = _read_refusal(error)
        is_passing = error.code >= 500 or error.code == OVERLOADED
        return Unreachable(str(refusal)) if is_passing else refusal

    def _describe(self, error: OSError | http.client.HTTPException) -> Unreachable:
        reason = getattr(error, "reason", None) or error
        return Unreachable(f"{self.server} does not answer: {reason}.")


def _trust(ca_file: str) -> ssl.SSLContext:
    """Return what says which certificates are trusted. Raises NotebookError."""
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError:
        raise NotebookError(
            f"{ca_file or 'The file of trusted authorities'} cannot be read, or has no "
            "certificates in PEM. Set MUSTER_CA_FILE, or sign in with `muster login --ca-file`."
        ) from None
    # Python 3.13 and later refuse certificates without key identifiers, which curl takes.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _parse_run(text: str) -> int | None:
    """Return the number of a container's run; None where there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _check_end(answer: http.client.HTTPResponse) -> None:
    """Raise IncompleteRead where an answer broke off: reading a part of it raises nothing."""
    is_cut = answer.chunk_left is not None if answer.chunked else bool(answer.length)
    if is_cut:
        raise http.client.IncompleteRead(b"")


def _read_refusal(error: urllib.error.HTTPError) -> RefusedByServer:
    """Return what the server said, with the fields it complains of."""
    try:
        with error:
            body = json.loads(error.read(LARGEST_ANSWER))
    except (ValueError, OSError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        return RefusedByServer(error.code, f"The server answered with status {error.code}.")
    details = [
        f"{each.get('field')}: {each.get('message') or each.get('details')}"
        for name in ("details", "complianceIssues")
        for each in body.get(name) or []
        if isinstance(each, dict)
    ]
    hint = [SIGN_IN] if error.code == 401 else []
    return RefusedByServer(error.code, "\n".join([body["message"], *details, *hint]))


def open_connection(environment: Mapping[str, str] = os.environ) -> RestConnection:
    """Return the connection that variables or the files of `muster login` describe.

    The variables are those of the command line: MUSTER_SERVER, MUSTER_TOKEN, MUSTER_PROJECT,
    MUSTER_CONTEXT and MUSTER_CA_FILE. Raises NotebookError where nobody is signed in.
    """
    folder = _find_config_folder(environment)
    config = _read_json(folder / "config.json")
    server = environment.get("MUSTER_SERVER", "")
    default = "" if server else config.get("current")
    name = environment.get("MUSTER_CONTEXT", "") or str(default or "")
    contexts = config.get("contexts")
    entry = contexts.get(name) if isinstance(contexts, dict) else None
    context = entry if isinstance(entry, dict) else {}
    if name and not context:
        raise NotebookError(f"There is no context {name}; `muster config list` shows them.")
    server = _check_server(server or str(context.get("server") or ""))
    token = environment.get("MUSTER_TOKEN", "") or _find_token(folder, f"context:{name}@{server}")
    if not (token.isascii() and token.isprintable() and " " not in token):
        # The HTTP client's own error would repeat it.
        raise NotebookError("MUSTER_TOKEN is not a token: it has characters that no token has.")
    return RestConnection(
        server,
        token,
        project=environment.get("MUSTER_PROJECT", "") or str(context.get("project") or ""),
        ca_file=environment.get("MUSTER_CA_FILE", "") or str(context.get("ca_file") or ""),
    )


def _check_server(server: str) -> str:
    if not server:
        raise NotebookError(f"No server is known. {SIGN_IN}")
    address = server if "://" in server else f"https://{server}"
    if not address.startswith(("https://", "http://")):
        raise NotebookError(f"{server} is not the address of a server.")
    return address.rstrip("/").removesuffix("/api/v1")


def _find_token(folder: Path, key: str) -> str:
    """Return the person's token of a server. Raises NotebookError where there is none."""
    tokens = _read_json(folder / "credentials.json").get("tokens")
    entry = tokens.get(key) if isinstance(tokens, dict) else None
    token = entry.get("token") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(token, str):
        raise NotebookError(f"You are not signed in. {SIGN_IN}")
    ends = entry.get("expiresAt")
    if not isinstance(ends, (int, float)) or ends < time.time():
        raise NotebookError(f"Your session has ended. {SIGN_IN}")
    return token


def _find_config_folder(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "muster"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(LARGEST_FILE))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise NotebookError(f"{path} cannot be read, or is not a file of muster's.") from None
    return value if isinstance(value, dict) else {}
