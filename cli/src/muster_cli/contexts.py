"""The configuration: servers by name (contexts), the one in use, and its project."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from urllib.parse import urlsplit

from muster_cli import private_files
from muster_cli.errors import NotFound, UsageProblem

FILE = "config.json"
SETTABLE = ("server", "project", "ca-file")


@dataclass(frozen=True, slots=True)
class Context:
    """A server, and what holds there where a command does not say otherwise."""

    server: str = ""
    project: str = ""
    ca_file: str = ""


@dataclass(slots=True)
class Config:
    """All contexts by name, and the name of the current one."""

    current: str = ""
    contexts: dict[str, Context] = field(default_factory=dict)

    def get(self, name: str) -> Context:
        """Return the context of a name. Raises NotFound."""
        if name not in self.contexts:
            raise NotFound(f"There is no context {name}.", "`muster config list` shows them.")
        return self.contexts[name]


def load_config() -> Config:
    """Read the configuration; an empty one where there is none."""
    values = private_files.read_json(private_files.find_config_folder() / FILE)
    contexts = values.get("contexts")
    names = Context.__dataclass_fields__
    return Config(
        str(values.get("current") or ""),
        {
            str(name): Context(**{key: str(each[key]) for key in names if each.get(key)})
            for name, each in (contexts if isinstance(contexts, dict) else {}).items()
            if isinstance(each, dict)
        },
    )


@contextmanager
def change_config() -> Iterator[Config]:
    """Give the configuration, and write what the block makes of it.

    Other commands wait meanwhile, so that of two changes at once none is lost.
    """
    with private_files.lock_file(private_files.find_config_folder() / FILE):
        config = load_config()
        yield config
        _save_config(config)


def _save_config(config: Config) -> None:
    contexts = {name: asdict(each) for name, each in config.contexts.items()}
    private_files.write_json(
        private_files.find_config_folder() / FILE, {"current": config.current, "contexts": contexts}
    )


def set_value(name: str, key: str, value: str) -> str:
    """Change one value of a context; return it as it is kept. Raises NotFound and UsageProblem."""
    if key not in SETTABLE:
        raise UsageProblem(f"{key} cannot be set; {', '.join(SETTABLE)} can.")
    if not name:
        raise UsageProblem(
            "No context is in use.",
            "Choose one by `muster config use NAME`, or sign in to a server.",
        )
    if key == "server":
        value = check_server(value)
    elif key == "ca-file" and value:
        # Commands are run in other folders, too.
        value = os.path.abspath(value)
    with change_config() as config:
        config.contexts[name] = replace(config.get(name), **{key.replace("-", "_"): value})
    return value


def check_server(text: str) -> str:
    """Return the address of a server in its usual form. Raises UsageProblem."""
    address = text.strip().rstrip("/")
    if "://" not in address:
        address = f"https://{address}"
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https") or not _is_host(rest.partition("/")[0], address):
        raise UsageProblem(
            f"{text} is not the address of a server.", "It is as https://muster.example.com."
        )
    return address.removesuffix("/api/v1")


def _is_host(host: str, address: str) -> bool:
    """Tell whether an address names a host, and a port that there can be."""
    if not address.isprintable() or set(address) & set(" @?#\\\"'<>"):
        return False
    try:
        parts = urlsplit(address)
        # A label that is empty or too long would fail once it is looked up.
        (parts.hostname or "").encode("idna")
        # Ports are read when they are asked for.
        return bool(parts.hostname) and parts.port != 0 and not host.endswith(":")
    except ValueError:
        return False


def name_server(server: str) -> str:
    """Return the name that a server's context gets: its host, and its port where it has one."""
    return server.partition("://")[2].partition("/")[0]
