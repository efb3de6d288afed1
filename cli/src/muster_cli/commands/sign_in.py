"""`login`, `logout` and `whoami`."""

import getpass
import ipaddress
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import click

from muster_cli import contexts
from muster_cli.actions import identity
from muster_cli.commands.invocation import Invocation, output_option, pass_invocation
from muster_cli.credentials import Secret, StoredToken
from muster_cli.errors import NotSignedIn, UsageProblem
from muster_cli.output import browser
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.output.terminal import clean_text
from muster_cli.session import Session
from muster_cli.settings import Settings, load_settings

LONGEST_PASSWORD = 4096


@click.command()
@click.argument("server", required=False)
@click.option("--user", default="", help="Sign in with this user name and a password.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option(
    "--code",
    "by_code",
    is_flag=True,
    help="By a one-time code that you confirm in a browser; so it is at a terminal.",
)
@click.option("--name", default="", help="What the server is called from now on; its host.")
@click.option("--ca-file", default="", type=click.Path(), help="Certificates to trust.")
@pass_invocation
def login(
    invocation: Invocation,
    server: str | None,
    user: str,
    password_stdin: bool,
    by_code: bool,
    name: str,
    ca_file: str,
) -> None:
    """Sign in to SERVER, or to the current one.

    You confirm a one-time code in a browser where you are signed in, also by single sign-on;
    or give a user name and a password with --user.

    MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET sign in a service account or an access key.
    """
    settings = _build_settings(invocation, server, name, ca_file)
    warn_of_plain_http(invocation, settings.server)
    session = Session(settings, invocation.notify)
    if by_code and (user or password_stdin):
        raise UsageProblem("--code takes no user name and no password.")
    if settings.client_id and not (user or by_code):
        if not settings.client_secret:
            raise UsageProblem("MUSTER_CLIENT_ID is set, and MUSTER_CLIENT_SECRET is not.")
        token = identity.sign_in_program(session, settings.client_id, settings.client_secret)
    elif not user:
        token = _sign_in_by_code(invocation, session, is_forced=by_code)
    else:
        token = identity.sign_in_person(session, user, _read_password(password_stdin))
    context = identity.store_sign_in(settings, token)
    invocation.terminal.write_line(
        f"Signed in to {settings.server} as {token.username}; the context is {context}."
    )


def _build_settings(
    invocation: Invocation, server: str | None, name: str, ca_file: str
) -> Settings:
    if not server:
        settings = load_settings(name or invocation.context)
        return Settings(
            settings.server,
            settings.context,
            settings.project,
            os.path.abspath(ca_file) if ca_file else settings.ca_file,
            settings.client_id,
            settings.client_secret,
        )
    address = contexts.check_server(server)
    return Settings(
        server=address,
        context=name or invocation.context or contexts.name_server(address),
        ca_file=os.path.abspath(ca_file) if ca_file else os.environ.get("MUSTER_CA_FILE", ""),
        client_id=os.environ.get("MUSTER_CLIENT_ID", ""),
        client_secret=Secret(os.environ.get("MUSTER_CLIENT_SECRET", "")),
    )


def warn_of_plain_http(invocation: Invocation, server: str) -> None:
    """Say where a password would go over the network as it is."""
    address = urlsplit(server)
    if address.scheme == "http" and not _is_loopback(address.hostname or ""):
        invocation.notify(
            f"{server} is not encrypted: whoever is on the way reads passwords and tokens."
        )


def _is_loopback(host: str) -> bool:
    """Tell whether a host is this machine: a name that begins as 127.0.0.1 does is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _sign_in_by_code(invocation: Invocation, session: Session, *, is_forced: bool) -> StoredToken:
    """Show a code and its page, open the page where there is a browser, and wait."""
    terminal = invocation.error_terminal
    if not (is_forced or terminal.is_terminal):
        raise NotSignedIn(
            "Nobody reads a code here.",
            "Say --user NAME --password-stdin, --code, or set MUSTER_CLIENT_ID and "
            "MUSTER_CLIENT_SECRET.",
        )
    code = identity.create_device_code(session)
    terminal.write_line(
        f"Confirm the code {terminal.paint(clean_text(code.code), 'bold')} at {code.page}"
    )
    terminal.flush()
    if terminal.is_terminal:
        browser.open_page(code.page)
    return identity.wait_for_token(session, code)


def _read_password(from_stdin: bool) -> Secret:
    if from_stdin:
        password = sys.stdin.readline(LONGEST_PASSWORD).rstrip("\r\n")
    elif sys.stdin.isatty():
        # It reads from the terminal without showing it, and restores the terminal in any case.
        password = getpass.getpass("Password: ")
    else:
        raise UsageProblem("Nobody can be asked for a password here.", "Say --password-stdin.")
    if not password:
        raise UsageProblem("The password is empty.")
    return Secret(password)


@click.command()
@pass_invocation
def logout(invocation: Invocation) -> None:
    """Forget the token of the current server.

    The token itself ends by its time; a person ends all at once with a new password.
    """
    settings = invocation.settings
    if identity.sign_out(settings):
        invocation.terminal.write_line(f"Signed out of {settings.server}.")
    else:
        invocation.notify(f"You were not signed in to {settings.server}.")


@click.command()
@output_option
@pass_invocation
def whoami(invocation: Invocation, output: OutputFormat) -> None:
    """Show who is signed in, and where."""
    caller: dict[str, Any] = identity.get_caller(invocation.session)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(caller, output, invocation.terminal)
        return
    if output is OutputFormat.NAME:
        invocation.terminal.write_line(caller["username"])
        return
    key = f" by the access key {caller['keyName']}" if caller.get("keyName") else ""
    kind = "service account " if caller["kind"] == "service-account" else ""
    invocation.terminal.write_line(
        f"{kind}{caller['username']}{key} at {caller['server']} (Muster {caller['serverVersion']})"
    )
