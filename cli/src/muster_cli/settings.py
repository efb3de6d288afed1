"""What holds for one run of the command: options before variables before the context."""

import os
from dataclasses import dataclass

from muster_cli import contexts
from muster_cli.credentials import NO_SECRET, Secret
from muster_cli.errors import NotSignedIn, UsageProblem

VARIABLES = {
    "MUSTER_SERVER": "the server's address, instead of that of the context",
    "MUSTER_CONTEXT": "the context to use",
    "MUSTER_PROJECT": "the project, where --project is not given",
    "MUSTER_CA_FILE": "certificates of the authorities to trust",
    "MUSTER_CLIENT_ID": "a service account or an access key to sign in with",
    "MUSTER_CLIENT_SECRET": "its secret",
    "MUSTER_TOKEN": "an access token to use as it is",
    "NO_COLOR": "no colours",
    "MUSTER_DEBUG": "1 shows the traceback of what fails unexpectedly",
}
"""The environment variables that are heeded."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where requests go, and as whom. `context` is the name that the token is stored under."""

    server: str
    context: str = ""
    project: str = ""
    ca_file: str = ""
    client_id: str = ""
    client_secret: Secret = NO_SECRET
    token: Secret = NO_SECRET

    @property
    def credentials_key(self) -> str:
        """Return the name under which this caller's token is stored."""
        if self.client_id:
            return f"program:{self.server}:{self.client_id}"
        return build_credentials_key(self.context, self.server)


def build_credentials_key(context: str, server: str) -> str:
    """Return the name of a person's token: it is of one server, and is sent to no other."""
    return f"context:{context}@{server}"


def load_settings(context: str = "", project: str = "") -> Settings:
    """Return the settings of this run.

    Raises NotSignedIn where no server is known, and UsageProblem where its address is none.
    """
    variables = os.environ.get
    config = contexts.load_config()
    server = variables("MUSTER_SERVER", "")
    name = context or variables("MUSTER_CONTEXT", "") or ("" if server else config.current)
    chosen = config.get(name) if name else contexts.Context()
    if not (server or chosen.server):
        raise NotSignedIn(
            "No server is known.", "Sign in with `muster login ADDRESS`, or set MUSTER_SERVER."
        )
    return Settings(
        server=(
            contexts.check_server(server)
            if server and not context
            else _check_chosen_server(name, chosen.server)
        ),
        context=name,
        project=project or variables("MUSTER_PROJECT", "") or chosen.project,
        ca_file=variables("MUSTER_CA_FILE", "") or chosen.ca_file,
        client_id=variables("MUSTER_CLIENT_ID", ""),
        client_secret=Secret(variables("MUSTER_CLIENT_SECRET", "")),
        token=Secret(variables("MUSTER_TOKEN", "")),
    )


def _check_chosen_server(name: str, server: str) -> str:
    """Return the address of a context's server, which a hand may have written. Raises UsageProblem.

    By a mistyped https a token would go over the network as it is.
    """
    try:
        return contexts.check_server(server)
    except UsageProblem as problem:
        raise UsageProblem(
            f"{problem.message} The context {name} has it.",
            "Correct it by `muster config set server ADDRESS`.",
        ) from None
