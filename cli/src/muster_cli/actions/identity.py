"""Signing in and out, and who is signed in."""

import socket
import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from muster_cli import contexts, credentials, routes
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import Refused, TimedOut, Unreachable
from muster_cli.session import Session
from muster_cli.settings import Settings, build_credentials_key

LONGEST_WAIT = 3600.0
LONGEST_INTERVAL = 60.0
"""Seconds between two questions at most, whatever the server asks for."""


def sign_in_person(session: Session, username: str, password: Secret) -> StoredToken:
    """Get a token for a user name and a password. Raises NotSignedIn."""
    token = session.create_token(
        {"grantType": "password", "username": username, "password": password.reveal()}
    )
    return replace(token, username=username)


def sign_in_program(session: Session, client_id: str, secret: Secret) -> StoredToken:
    """Get a token for a service account or an access key. Raises NotSignedIn."""
    token = session.create_token(
        {
            "grantType": "client_credentials",
            "clientID": client_id,
            "clientSecret": secret.reveal(),
        }
    )
    return replace(token, username=client_id)


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code that a person confirms on a page, and the secret that the token is taken with."""

    code: str
    page: str
    secret: Secret
    seconds: float
    interval: float


def create_device_code(session: Session) -> DeviceCode:
    """Ask the server for a code, in the name of this machine. Raises Refused."""
    name = f"muster on {socket.gethostname()}"[:60]
    answer = session.request_unsigned(routes.CREATE_DEVICE_CODE, {"clientName": name}).parse()
    try:
        code, secret = str(answer["userCode"]), Secret(str(answer["deviceCode"]))
        seconds, interval = float(answer["expiresIn"]), float(answer["interval"])
    except (KeyError, TypeError, ValueError):
        raise Refused(200, f"{session.settings.server} is no Muster.") from None
    return DeviceCode(
        code,
        # Below the address that was typed: an answer sends nobody elsewhere.
        f"{session.settings.server}/sign-in/program?code={quote(code)}",
        secret,
        min(seconds, LONGEST_WAIT),
        min(max(1.0, interval), LONGEST_INTERVAL),
    )


def wait_for_token(session: Session, code: DeviceCode) -> StoredToken:
    """Wait until somebody has confirmed a code. Raises NotSignedIn, Refused and TimedOut."""
    deadline = time.monotonic() + code.seconds
    body = {"deviceCode": code.secret.reveal()}
    while time.monotonic() < deadline:
        # A server that restarts keeps the code: it is asked again.
        try:
            answer = session.request_unsigned(routes.CLAIM_DEVICE_TOKEN, body)
        except Unreachable:
            pass
        except Refused as refusal:
            if not refusal.is_temporary:
                raise
        else:
            if answer.status == 200:
                return session.read_token(answer)
        time.sleep(code.interval)
    raise TimedOut("Nobody confirmed the code in time.", "Ask for a new one with `muster login`.")


def store_sign_in(settings: Settings, token: StoredToken) -> str:
    """Keep the token, and make its server the current context; return the context's name."""
    name = settings.context or contexts.name_server(settings.server)
    with contexts.change_config() as config:
        old_context = config.contexts.get(name, contexts.Context())
        config.contexts[name] = contexts.Context(
            settings.server,
            settings.project or old_context.project,
            settings.ca_file or old_context.ca_file,
        )
        config.current = name
    credentials.store_token(build_credentials_key(name, settings.server), token)
    return name


def sign_out(settings: Settings) -> bool:
    """Forget the token of these settings; tell whether there was one."""
    return credentials.remove_token(settings.credentials_key)


def get_caller(session: Session) -> dict[str, Any]:
    """Return who is signed in, and where."""
    caller: dict[str, Any] = session.call(routes.GET_ME)
    caller |= {"server": session.settings.server, "context": session.settings.context}
    return caller
