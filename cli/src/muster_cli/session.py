"""Signed-in requests to REST: the token, retries of what is safe to repeat, pages of lists."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPMessage, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode

from muster_cli import VERSION, credentials
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import (
    TEMPORARY_STATUSES,
    ForeignRefusal,
    NotSignedIn,
    Refused,
    Unreachable,
)
from muster_cli.http_client import FOREIGN_HINT, VERSION_HEADER, Answer, HttpClient
from muster_cli.routes import CREATE_TOKEN, Route
from muster_cli.settings import Settings

PAGE_ITEMS = 500
SIGN_IN_HINT = "Sign in with `muster login`."
NEXT_HEADER = "X-Next-Offset"
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0)
"""Seconds before each further try of a request whose server does not answer; the last stays."""

Query = Mapping[str, str | int | bool | Sequence[str] | None]
"""Parameters of a request; one that is given several times has a sequence."""


class Session:
    """Requests as one caller. `notify` takes a sentence for the person, such as an older server."""

    def __init__(self, settings: Settings, notify: Callable[[str], None]) -> None:
        self.settings = settings
        self._notify = notify
        self._client = HttpClient(settings.server, settings.ca_file)
        self._token: Secret | None = None
        self._has_compared = False

    def clone(self) -> "Session":
        """Return a session of the same caller with a connection of its own, for a thread."""
        other = Session(self.settings, self._notify)
        other._token, other._has_compared = self._token, True
        return other

    def close(self) -> None:
        """End the connection, if there is one."""
        self._client.close()

    def call(
        self,
        route: Route,
        *,
        query: Query | None = None,
        body: Any = None,
        patience: float = 0.0,
        **arguments: str,
    ) -> Any:
        """Return the JSON object that a route answers; None where a change answers nothing.

        A GET is repeated for `patience` seconds while the server does not answer. Raises Refused
        and Unreachable.
        """
        answer = self.request(route, query=query, body=body, patience=patience, **arguments)
        value = answer.parse()
        if not isinstance(value, dict) and (answer.content or route.method == "GET"):
            raise self._build_misunderstanding(answer, route, arguments)
        return value

    def request(
        self,
        route: Route,
        *,
        query: Query | None = None,
        body: Any = None,
        patience: float = 0.0,
        **arguments: str,
    ) -> Answer:
        """Return the answer of a route. Raises as `call` does."""
        target = build_target(route, query, arguments)
        deadline, tries = time.monotonic() + (patience if route.method == "GET" else 0.0), 0
        while True:
            try:
                answer = self._request_signed(route.method, target, body)
                if answer.status not in TEMPORARY_STATUSES or time.monotonic() > deadline:
                    break
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1
        self._compare_versions(answer.headers)
        if answer.status >= 300:
            raise self._build_refusal(answer)
        return answer

    def list_items(
        self,
        route: Route,
        name: str = "",
        *,
        query: Query | None = None,
        limit: int | None = None,
        patience: float = 0.0,
        **arguments: str,
    ) -> Iterator[dict[str, Any]]:
        """Yield the items of a list page by page, at most `limit`; `name` is "" for an array."""
        offset, remaining = 0, limit
        while remaining is None or remaining > 0:
            size = PAGE_ITEMS if remaining is None else min(remaining, PAGE_ITEMS)
            page = {**(query or {}), "limit": size, **({"offset": offset} if offset else {})}
            answer = self.request(route, query=page, patience=patience, **arguments)
            value = answer.parse()
            items = value.get(name or "items") if isinstance(value, dict) else value
            if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
                raise self._build_misunderstanding(answer, route, arguments)
            # A list that knows no pages answers with all that there are.
            items = items if remaining is None else items[:remaining]
            yield from items
            remaining = None if remaining is None else remaining - len(items)
            following = (
                answer.headers.get(NEXT_HEADER) if isinstance(value, list) else value.get("next")
            )
            if following is None:
                return
            if not str(following).isdecimal():
                raise self._build_misunderstanding(answer, route, arguments)
            if int(following) <= offset:
                return
            offset = int(following)

    @contextmanager
    def stream(
        self, route: Route, *, query: Query | None = None, **arguments: str
    ) -> Iterator[HTTPResponse]:
        """Give an answer to be read while it comes. Raises Refused and Unreachable."""
        target = build_target(route, query, arguments)
        for can_renew in (self._can_renew_token(), False):
            with self._client.stream(route.method, target, self._build_headers()) as response:
                if response.status < 300:
                    yield response
                    return
                content = response.read(1 << 20)
            if response.status != 401 or not can_renew:
                raise self._build_refusal(Answer(response.status, response.headers, content))
            self._token = self._sign_in_program()

    def create_token(self, body: Mapping[str, str]) -> StoredToken:
        """Exchange credentials for a token. Raises NotSignedIn where they are wrong."""
        return self.read_token(self.request_unsigned(CREATE_TOKEN, body))

    def request_unsigned(self, route: Route, body: Mapping[str, str]) -> Answer:
        """Return the answer of a route that takes no token. Raises NotSignedIn and Refused."""
        answer = self._client.request(*route, body)
        self._compare_versions(answer.headers)
        if answer.status in (401, 403):
            refusal = build_refusal(answer)
            raise NotSignedIn(refusal.message, refusal.hint)
        if answer.status >= 300:
            raise build_refusal(answer)
        return answer

    def read_token(self, answer: Answer) -> StoredToken:
        """Return the token of an answer. Raises Refused where there is none."""
        value = answer.parse()
        if not isinstance(value, dict) or not isinstance(value.get("accessToken"), str):
            raise Refused(answer.status, f"{self.settings.server} is no Muster.")
        expires_at = time.time() + float(value.get("expiresIn") or 0)
        return StoredToken(
            Secret(value["accessToken"]), expires_at, str(value.get("username") or "")
        )

    def _request_signed(self, method: str, target: str, body: Any) -> Answer:
        answer = self._client.request(method, target, body, self._build_headers())
        if answer.status == 401 and self._can_renew_token():
            # A stored token can end early, as with a rotated secret: the program signs in anew.
            self._token = self._sign_in_program()
            answer = self._client.request(method, target, body, self._build_headers())
        return answer

    def _build_misunderstanding(
        self, answer: Answer, route: Route, arguments: Mapping[str, str]
    ) -> Refused:
        """Build the error of an answer that has not the shape of Muster's."""
        return Refused(
            answer.status,
            f"The answer of {self.settings.server}{build_target(route, None, arguments)} is not "
            "understood: it has not the shape of Muster's.",
            hint=FOREIGN_HINT,
        )

    def _build_refusal(self, answer: Answer) -> Refused:
        refusal = build_refusal(answer)
        if answer.status == 401 and self.settings.token:
            # It comes before every other token, so a sign-in would change nothing.
            refusal.hint = "MUSTER_TOKEN is set: give it a token that is good, or unset it."
        return refusal

    def _can_renew_token(self) -> bool:
        """Tell whether the caller is a program with credentials of its own."""
        return bool(self.settings.client_id) and not self.settings.token

    def _build_headers(self) -> dict[str, str]:
        if self._token is None:
            self._token = self._get_token()
        return {"Authorization": f"Bearer {self._token.reveal()}"}

    def _get_token(self) -> Secret:
        settings = self.settings
        if settings.token:
            return check_token(settings.token)
        stored = credentials.find_token(settings.credentials_key)
        if stored is not None and not stored.is_expired:
            return stored.token
        if settings.client_id:
            return self._sign_in_program()
        if stored is not None:
            raise NotSignedIn("Your session has ended.", SIGN_IN_HINT)
        raise NotSignedIn(f"You are not signed in to {settings.server}.", SIGN_IN_HINT)

    def _sign_in_program(self) -> Secret:
        settings = self.settings
        if not settings.client_secret:
            raise NotSignedIn("MUSTER_CLIENT_ID is set, and MUSTER_CLIENT_SECRET is not.")
        token = self.create_token(
            {
                "grantType": "client_credentials",
                "clientID": settings.client_id,
                "clientSecret": settings.client_secret.reveal(),
            }
        )
        credentials.store_token(settings.credentials_key, token)
        return token.token

    def _compare_versions(self, headers: HTTPMessage) -> None:
        """Say once where the server knows other fields and routes than this client."""
        if self._has_compared:
            return
        self._has_compared = True
        if note := compare_versions(headers.get(VERSION_HEADER) or ""):
            self._notify(note)


def check_token(token: Secret) -> Secret:
    """Return a token that can be sent. Raises NotSignedIn, without a character of it."""
    text = token.reveal()
    # Otherwise the error of the HTTP client repeats the header, and the token with it.
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise NotSignedIn(
            "MUSTER_TOKEN is not a token: there are spaces, line ends or other characters in it "
            "that no token has.",
            "Copy it again, without what stands around it.",
        )
    return token


def compare_versions(server: str) -> str:
    """Return what to say of a server of this version; "" where client and server are of one age."""
    if not server:
        return (
            "The server does not say its version: it is older than this muster, and may not know "
            "all that it sends."
        )
    theirs, ours = _parse_version(server), _parse_version(VERSION)
    if theirs == ours or not theirs:
        return ""
    if theirs > ours:
        return (
            f"The server is newer ({server}) than this muster ({VERSION}): it has more than "
            "this one knows. Install the muster of that version."
        )
    return (
        f"The server is older ({server}) than this muster ({VERSION}), and may refuse what it "
        "does not know yet."
    )


def _parse_version(text: str) -> tuple[int, ...]:
    """Return major and minor: the fields and routes of REST change with them only."""
    parts = text.split(".")[:2]
    is_known = text.isascii() and all(each.isdigit() for each in parts)
    return tuple(int(each) for each in parts) if is_known else ()


def build_target(route: Route, query: Query | None, arguments: Mapping[str, str]) -> str:
    """Return the path of a route with its arguments and query."""
    path = route.path.format(**{name: quote(value, safe="") for name, value in arguments.items()})
    parameters = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def build_refusal(answer: Answer) -> Refused:
    """Return the error of an answer, in the server's own words where it has some."""
    hint = SIGN_IN_HINT if answer.status == 401 else ""
    if 300 <= answer.status < 400:
        return Refused(
            answer.status,
            f"The server sends requests on to {answer.headers.get('Location', 'nowhere')}.",
            (),
            "Use that address with `muster config set server ADDRESS`, if you trust it.",
        )
    try:
        body = answer.parse()
    except Refused:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        if 401 < answer.status < 500:
            hint = FOREIGN_HINT
        return ForeignRefusal(
            answer.status, f"The server answered with status {answer.status}.", hint
        )
    details = [
        (str(each.get("field") or ""), str(each.get("message") or ""))
        for each in _list_dicts(body.get("details"))
    ] + [
        (str(each.get("field") or ""), str(each.get("details") or ""))
        for each in _list_dicts(body.get("complianceIssues"))
    ]
    return Refused(answer.status, body["message"], tuple(dict.fromkeys(details)), hint)


def _list_dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
