"""All options, read from the environment once: type, default and purpose of each.

Invalid values are refused with the variable named.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from console import redis_address

PREFIX = "MUSTER_"
DAY = 24 * 3600
MIB = 1 << 20
GIB = 1 << 30
_ENCODE = (
    "percent-encode what a user's name or password has of / ? # @ [ ] (%2F %3F %23 %40 %5B %5D)"
)


class BadOptions(Exception):
    """The environment has unusable values: a line for each, naming the variable."""


def _make_absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _url_validator(*schemes: str) -> AfterValidator:
    """Build a validator for URLs with one of these schemes; empty is allowed."""

    def check_url(text: str) -> str:
        scheme, separator, rest = text.partition("://")
        if text and not (separator and rest and scheme in schemes):
            # The value may hold a password, so it is not repeated.
            raise ValueError(
                f"it has to begin with {' or '.join(f'{each}://' for each in schemes)}"
            )
        try:
            # Reading the port parses it.
            urlsplit(text).port  # noqa: B018
        except ValueError:
            raise ValueError(
                "host and port cannot be read from it. Write the port as a number up to 65535, "
                f"close each bracket, and {_ENCODE}"
            ) from None
        return text

    return AfterValidator(check_url)


def _check_redis_url(text: str) -> str:
    """Check that every client of Redis takes an address; empty is allowed."""
    parts = urlsplit(text)
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        # A / ? or # ended the host within the password, whose first half reads as a port.
        raise ValueError(f"it has an @ after host and port. In it, {_ENCODE}")
    if parts.query and not redis_address.has_valid_options(text):
        names = ", ".join(sorted(dict(parse_qsl(parts.query, keep_blank_values=True))))
        raise ValueError(
            f"its clients do not take these options ({names}): one is unknown, has a value of "
            "another kind, or is for rediss:// only. Correct it, or leave it out"
        )
    return text


def _check_nodes(text: str) -> str:
    """Check the form of a number of nodes or of their shapes; the cluster checks the bounds."""
    shape = "[0-9]+x[0-9]+gpu"
    if text and not re.fullmatch(f"[0-9]+|{shape}(,{shape})*", text):
        raise ValueError("write a number of nodes as 4, or shapes with their GPUs as 4x1gpu,2x0gpu")
    return text


def _check_metrics_token(text: str) -> str:
    """Check that a token cannot be guessed, and can be sent in a header."""
    if text and not re.fullmatch(r"[!-~]{20,200}", text):
        # It is a secret, so it is not repeated.
        raise ValueError("it has to be 20 to 200 printable ASCII characters without spaces")
    return text


def split_list(text: str) -> list[str]:
    """Return the parts of a comma-separated text."""
    return [part.strip() for part in text.split(",") if part.strip()]


class Options(BaseSettings):
    """All options. The table of docs/settings.md is made of these lines."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    data_dir: Annotated[Path, AfterValidator(_make_absolute)] = Field(
        Path("var"), description="where all data lives: database, keys, logs, the embedded cluster"
    )
    static_dir: Annotated[Path, AfterValidator(_make_absolute)] | None = Field(
        None,
        description=(
            "where the static files lie that were collected ahead, as in an image; into "
            "DATA_DIR/static where it is empty"
        ),
    )
    alive_file: Annotated[Path, AfterValidator(_make_absolute)] | None = Field(
        None,
        description=(
            "a file whose time worker, beat, follow and capture set anew while they go on, for a "
            "probe to look at"
        ),
    )
    host: str = Field("127.0.0.1", description="the address that the web server listens on")
    port: int = Field(8000, ge=0, le=65535, description="its port; 0 picks a free one")
    production: bool = Field(
        False, description="refuse to start without given keys, and send cookies over HTTPS only"
    )
    debug: bool = Field(False, description="Django's debug pages; never together with production")
    secret_key: str = Field(
        "",
        description=(
            "signs sessions and tokens; made by `make up` into DATA_DIR/keys.json where it is not "
            "given"
        ),
    )
    encryption_keys: str = Field(
        "",
        description=(
            "comma-separated Fernet keys for credentials at rest, newest first: the first "
            "encrypts, all decrypt"
        ),
    )
    allowed_hosts: str = Field(
        "", description="comma-separated names under which the console is reached, beside loopback"
    )
    trusted_origins: str = Field(
        "",
        description=(
            "comma-separated origins (https://...) whose forms are accepted, where a proxy "
            "changes the host"
        ),
    )
    behind_proxy: bool = Field(
        False, description="a proxy in front sets X-Forwarded-Proto and X-Forwarded-For"
    )
    connections_per_address: int = Field(
        256,
        ge=8,
        description=(
            "connections that one address may have open at once, streams of pages and logs not "
            "counted; no bound for a proxy that is trusted"
        ),
    )
    requests_per_minute: int = Field(
        6000,
        ge=0,
        description=(
            "requests over REST that the tokens of one user or service account may make in a "
            "minute, over all web processes; 0 is without limit"
        ),
    )
    database_url: Annotated[str, _url_validator("postgres", "postgresql")] = Field(
        "",
        description="`postgres://user:password@host/name`; SQLite in DATA_DIR where it is empty",
    )
    redis_url: Annotated[
        str, _url_validator("redis", "rediss"), AfterValidator(_check_redis_url)
    ] = Field("", description="`redis://...`; `make up` starts one where it is empty")
    admin_password: str = Field(
        "",
        description=(
            "the first administrator's password (user admin); a random one is shown once where it "
            "is empty"
        ),
    )
    localkube: bool = Field(True, description="whether `make up` starts the embedded cluster")
    localkube_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="the embedded cluster's port; 0 keeps the one it had, or picks a free one",
    )
    localkube_gpus: int | None = Field(
        None,
        ge=0,
        le=1024,
        description=(
            "GPUs that the embedded cluster offers; the machine's own, or 4 virtual ones, where "
            "it is empty"
        ),
    )
    localkube_nodes: Annotated[str, AfterValidator(_check_nodes)] = Field(
        "",
        description=(
            "nodes that the embedded cluster divides this machine into: 4, or shapes with their "
            "GPUs as 4x1gpu,2x0gpu; one where it is empty"
        ),
    )
    worker_threads: int = Field(
        8, ge=1, le=256, description="steps that one worker process does at once"
    )
    kube_rate: float = Field(
        50.0, gt=0, description="requests a second that one process sends to one cluster at most"
    )
    private_clusters: bool = Field(
        True, description="whether a cluster's address may be a private one, as most are"
    )
    loopback_clusters: bool | None = Field(
        None,
        description=(
            "whether a cluster may be on this machine, beside the embedded one; not in production "
            "where it is empty"
        ),
    )
    private_sources: bool = Field(
        True,
        description=(
            "whether Git repositories and S3 services of workloads may have private addresses, as "
            "most have"
        ),
    )
    private_services: bool | None = Field(
        None,
        description=(
            "whether what the console itself asks beside clusters, as single sign-on, may have a "
            "private address, or be on this machine; not in production where it is empty"
        ),
    )
    oidc_issuer: Annotated[str, _url_validator("https", "http")] = Field(
        "",
        description=(
            "the issuer of single sign-on by OpenID Connect, or its discovery address; none where "
            "it is empty"
        ),
    )
    oidc_client_id: str = Field("", description="what the issuer calls this installation")
    oidc_client_secret: str = Field("", description="the secret that goes with it")
    oidc_name: str = Field(
        "single sign-on", max_length=40, description="what the button on the sign-in page calls it"
    )
    oidc_groups_claim: str = Field("groups", description="the claim that names a person's groups")
    oidc_scopes: str = Field(
        "openid profile email",
        description="the scopes that are asked for, with spaces between them",
    )
    require_second_factor: bool = Field(
        False, description="whether who signs in with a password has to set up a second factor"
    )
    session_hours: float = Field(
        24, gt=0, le=30 * 24, description="after how long without use a browser's session ends"
    )
    audit_days: float = Field(365, ge=1, description="how long entries of the audit log are kept")
    sample_seconds: int = Field(
        60,
        ge=10,
        le=3600,
        description=(
            "how often it is written down what every project holds, and how its GPUs are used"
        ),
    )
    sample_days: float = Field(
        90, ge=1, description="how long that is kept for the charts, thinner as it ages"
    )
    ledger_days: float = Field(
        800, ge=62, description="how long it is kept what became of GPU hours, by day and workload"
    )
    forecast_days: float = Field(
        90, ge=31, description="how long forecasts of starts are kept with what became of them"
    )
    time_machine_days: float = Field(
        90,
        ge=0,
        le=3660,
        description=(
            "how long the state of queue, nodes and quotas is kept for looking back (0: not at all)"
        ),
    )
    metric_seconds: int = Field(
        15,
        ge=5,
        le=300,
        description="how often it is measured what pods and nodes use",
    )
    metric_hours: float = Field(
        6, ge=1, le=48, description="how long every figure of it is kept as it was measured"
    )
    metric_minute_days: float = Field(
        7, ge=0.5, le=60, description="how long one figure a minute is kept"
    )
    metric_days: float = Field(
        90, ge=1, le=366, description="how long one figure every ten minutes is kept"
    )
    poll_seconds: int = Field(
        60, ge=5, description="how often every cluster is listed completely, beside following it"
    )
    sweep_seconds: int = Field(
        10, ge=1, description="how often the database is searched for steps that were lost"
    )
    grow_after_seconds: int = Field(
        60,
        ge=0,
        le=DAY,
        description=(
            "how long quota and nodes must have had room before an elastic workload gets more "
            "workers, and how long the number of its workers stays as it is after a change; "
            "room for twice as long for each time within a day that workers were given up, at most "
            "an hour"
        ),
    )
    shrink_after_seconds: int = Field(
        300,
        ge=10,
        le=DAY,
        description=(
            "how long workers of an elastic workload, beyond its minimum, may wait for a node "
            "before it goes on without them"
        ),
    )
    log_days: float = Field(14, gt=0, description="how long a pod's log is kept after its end")
    log_bytes: int = Field(
        20 * GIB, ge=MIB, description="how many bytes of logs are kept at most, oldest first"
    )
    log_bytes_container: int = Field(
        2 * GIB, ge=MIB, description="how many bytes of one container's log are kept"
    )
    log_storage: Annotated[str, _url_validator("s3")] = Field(
        "", description="`s3://bucket/prefix` where ended logs go; DATA_DIR/logs where it is empty"
    )
    history_days: float = Field(
        90, gt=0, description="how long the events of an ended workload are kept"
    )
    deleted_days: float = Field(
        14,
        gt=0,
        description=(
            "how long a deleted workload stays listed under Deleted, with its logs and history"
        ),
    )
    git_image: str = Field(
        "registry.k8s.io/git-sync/git-sync:v4.4.0",
        description="the git-sync (v4) image that fetches Git repositories into pods",
    )
    s3_image: str = Field(
        "docker.io/rclone/rclone:1.68",
        description="the rclone image that downloads S3 buckets into pods",
    )
    token_seconds: int = Field(
        12 * 3600,
        ge=300,
        le=30 * DAY,
        description="how long an access token of the REST API is good",
    )
    refresh_token_seconds: int = Field(
        7 * DAY,
        ge=0,
        le=90 * DAY,
        description=(
            "for how long after a password was given a refresh token gets access tokens; 0 gives "
            "none"
        ),
    )
    metrics_token: Annotated[str, AfterValidator(_check_metrics_token)] = Field(
        "",
        description=(
            "the bearer token for which /metrics answers; where it is empty, it answers programs "
            "on the same machine alone, and nobody in production"
        ),
    )
    traces_url: Annotated[str, _url_validator("https", "http")] = Field(
        "",
        description=(
            "an OpenTelemetry collector that gets traces by OTLP over HTTP, as "
            "http://collector:4318 (install requirements-otel.lock); none are made where it is "
            "empty"
        ),
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="what the processes say"
    )

    @property
    def local_clusters(self) -> bool:
        """Whether a cluster may be on this machine."""
        return not self.production if self.loopback_clusters is None else self.loopback_clusters

    @property
    def inner_services(self) -> bool:
        """Whether services other than clusters may be on a private network or this machine."""
        return not self.production if self.private_services is None else self.private_services

    @property
    def hosts(self) -> list[str]:
        return split_list(self.allowed_hosts)

    @property
    def origins(self) -> list[str]:
        return split_list(self.trusted_origins)


def read_options() -> Options:
    """Return the options of this process's environment. Raises BadOptions."""
    try:
        return Options()
    except ValidationError as error:
        lines = [
            f"{PREFIX}{'_'.join(map(str, each['loc'])).upper()}: "
            f"{_describe_problem(each['type'], each['msg'], each.get('ctx', {}))}"
            for each in error.errors()
        ]
        raise BadOptions("\n".join(lines)) from None


def _describe_problem(kind: str, message: str, context: dict[str, Any]) -> str:
    """Return what to write instead. The value is not repeated: it may hold a password."""
    match kind:
        case "int_parsing":
            return "write a whole number"
        case "float_parsing":
            return "write a number"
        case "bool_parsing":
            return "write 1 or 0"
        case "greater_than_equal":
            return f"write {context['ge']:,} or more"
        case "greater_than":
            return f"write more than {context['gt']:,g}"
        case "less_than_equal":
            return f"write at most {context['le']:,}"
        case "literal_error":
            return f"write {context['expected'].replace(chr(39), '')}"
        case "value_error":
            return str(context["error"])
        case _:
            return message
