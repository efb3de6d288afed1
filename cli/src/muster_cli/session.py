"""Signed-in requests to REST: the token, retries of what is safe to repeat, pages of lists."""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urljoin

from muster_cli import VERSION, credentials
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import (
    TEMPORARY_STATUSES,
    UNKNOWN_OUTCOME,
    CliError,
    ForeignRefusal,
    Interrupted,
    NotSignedIn,
    Refused,
    Unreachable,
)
from muster_cli.http_client import FOREIGN_HINT, VERSION_HEADER, Answer, HttpClient
from muster_cli.routes import CREATE_TOKEN, DISTRIBUTED, GET_ME, STANDARD, Route
from muster_cli.settings import Settings

PAGE_ITEMS = 500
SIGN_IN_HINT = "Sign in with `muster login`."
NEXT_HEADER = "X-Next-Offset"
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0)
"""Seconds before each further try of a request whose server does not answer; the last stays."""

_READING_ROUTES = frozenset({DISTRIBUTED.preflight, STANDARD.preflight})
"""What changes nothing, though its method is not GET."""

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
        self._clock_offset: float | None = None
        """Seconds by which the server's clock is ahead of this machine's; None before an answer."""

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
            except Unreachable as error:
                if time.monotonic() > deadline:
                    raise _add_outcome(error, route, is_known=not error.was_sent) from None
            except KeyboardInterrupt:
                if _is_change(route):
                    raise Interrupted(UNKNOWN_OUTCOME) from None
                raise
            time.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
            tries += 1
        self._compare_versions(answer)
        self._compare_clocks(answer)
        if answer.status >= 300:
            refusal = self._build_refusal(answer, target)
            is_known = not isinstance(refusal, ForeignRefusal) or answer.status < 500
            raise _add_outcome(refusal, route, is_known=is_known)
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
                content = self._client.read_content(response, 1 << 20)
            if response.status != 401 or not can_renew:
                answer = Answer(response.status, response.headers, content)
                raise self._build_refusal(answer, target)
            self._token = self._sign_in_program()

    def get_time(self) -> float:
        """Return the server's time, in seconds from 1970 on; this machine's where it says none.

        What is counted back from now is compared with the server's moments. Raises as `call` does.
        """
        if self._clock_offset is None:
            self.request(GET_ME)
        return time.time() + (self._clock_offset or 0.0)

    def create_token(self, body: Mapping[str, str]) -> StoredToken:
        """Exchange credentials for a token. Raises NotSignedIn where they are wrong."""
        return self.read_token(self.request_unsigned(CREATE_TOKEN, body))

    def request_unsigned(self, route: Route, body: Mapping[str, str]) -> Answer:
        """Return the answer of a route that takes no token. Raises NotSignedIn and Refused."""
        answer = self._client.request(*route, body)
        self._compare_versions(answer)
        if answer.status in (401, 403):
            refusal = build_refusal(answer)
            raise NotSignedIn(refusal.message, refusal.hint)
        if answer.status >= 300:
            raise self._build_refusal(answer, route.path)
        return answer

    def read_token(self, answer: Answer) -> StoredToken:
        """Return the token of an answer. Raises Refused where there is none."""
        value = answer.parse()
        if isinstance(value, dict) and isinstance(value.get("accessToken"), str):
            token = Secret(value["accessToken"])
            seconds = credentials.parse_seconds(value.get("expiresIn") or 0)
            if token and _is_sendable(token) and seconds is not None:
                return StoredToken(token, time.time() + seconds, str(value.get("username") or ""))
        raise Refused(answer.status, f"{self.settings.server} is no Muster.", (), FOREIGN_HINT)

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

    def _build_refusal(self, answer: Answer, target: str) -> Refused:
        if 300 <= answer.status < 400:
            return _build_redirect_refusal(answer, self.settings.server, target)
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
            return _check_token(
                settings.token,
                "MUSTER_TOKEN",
                "Copy it again, without what stands around it.",
            )
        stored = credentials.find_token(settings.credentials_key)
        if stored is not None and not stored.is_expired:
            return _check_token(stored.token, "What is stored as your token", SIGN_IN_HINT)
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

    def _compare_clocks(self, answer: Answer) -> None:
        try:
            moment = parsedate_to_datetime(answer.headers.get("Date") or "")
            self._clock_offset = moment.timestamp() - time.time()
        except (ValueError, OverflowError):
            self._clock_offset = 0.0

    def _compare_versions(self, answer: Answer) -> None:
        """Say once where the server knows other fields and routes than this client."""
        version = answer.headers.get(VERSION_HEADER) or ""
        # A proxy's page has no version either, and says nothing of the server's.
        if self._has_compared or not (version or answer.is_json):
            return
        self._has_compared = True
        if note := compare_versions(version):
            self._notify(note)


def _check_token(token: Secret, source: str, hint: str) -> Secret:
    """Return a token that can be sent. Raises NotSignedIn, without a character of it."""
    if not _is_sendable(token):
        raise NotSignedIn(
            f"{source} is not a token: there are spaces, line ends or other characters in it "
            "that no token has.",
            hint,
        )
    return token


def _is_sendable(token: Secret) -> bool:
    """Tell whether a token can stand in a header."""
    text = token.reveal()
    # Otherwise the error of the HTTP client repeats the header, and the token with it.
    return text.isascii() and text.isprintable() and " " not in text


def _is_change(route: Route) -> bool:
    """Tell whether a route changes something at the server."""
    return route.method != "GET" and route not in _READING_ROUTES


def _add_outcome(error: CliError, route: Route, *, is_known: bool) -> CliError:
    """Return an error that also says where a change may have been done in spite of it."""
    if _is_change(route) and not is_known:
        error.hint = f"{error.hint}\n{UNKNOWN_OUTCOME}".lstrip()
    return error


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
    try:
        body = answer.parse()
    except Refused:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("message"), str):
        if answer.status in TEMPORARY_STATUSES:
            hint = "A proxy before Muster does not reach it: try again in a minute."
        elif answer.status >= 500:
            hint = "Try again; where it stays so, the server's log says why."
        elif answer.status != 401:
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


def _build_redirect_refusal(answer: Answer, server: str, target: str) -> Refused:
    """Return the error of an answer that sends a request elsewhere: no token goes there."""
    location = urljoin(f"{server}{target}", answer.headers.get("Location") or "")
    # A query may be a secret of a sign-in, and leads nowhere by itself.
    address, path = location.partition("?")[0], target.partition("?")[0]
    moved = address.removesuffix(path)
    if moved in (address, server):
        return Refused(
            answer.status,
            f"The server sends requests on to {address}, which is not Muster's REST: it may be "
            "a page to sign in at, of a proxy before Muster.",
            (),
            "Look whether this is the address of Muster (`muster config list`), and ask its "
            "administrator for one at which programs reach it.",
        )
    return Refused(
        answer.status,
        f"The server sends requests on to {moved}.",
        (),
        f"If you trust that address, sign in there: `muster login {shlex.quote(moved)}`; that of a "
        "program is in MUSTER_SERVER.",
    )


def _list_dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
