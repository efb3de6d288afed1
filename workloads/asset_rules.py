"""An asset's values as parts of a Spec, so that one set of rules judges both.

Nothing here queries the database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from console.errors import UserError
from environments.credentials import parse_registry_address, secret_name
from environments.seams import Problems
from workloads.specs import (
    S3,
    Claim,
    ClaimAccess,
    Compute,
    ConfigMap,
    Environment,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    InvalidCommandLine,
    NewClaim,
    Nfs,
    PullPolicy,
    Secret,
    Setup,
    Variable,
    Volume,
    VolumeAccess,
    pod_problems,
    split_command_line,
    value_rules,
)
from workloads.specs.problem_reports import FieldProblem

Values = Mapping[str, Any]


def build_environment(values: Values) -> Environment:
    """Build the Environment of a Spec from an environment asset's values.

    Raises BadWords for a command or arguments that cannot be split.
    """
    return Environment(
        image=values["image"],
        pull_policy=PullPolicy(values["pull_policy"]) if values["pull_policy"] else None,
        command=split_command_line(values["command"]),
        args=split_command_line(values["args"]),
        variables=tuple(
            Variable(str(each.get("name", "")), str(each.get("value", "")))
            for each in values["variables"]
        ),
        working_dir=values["working_dir"],
    )


def build_compute(values: Values) -> Compute:
    """Build the Compute of a Spec from a compute resource's values."""
    portion = values["gpu_portion"]
    return Compute(
        gpus=Gpus(
            values["gpu_devices"],
            None if portion is None else Decimal(portion),
            values["gpu_memory"],
        ),
        cpu_request=values["cpu_request"],
        cpu_limit=values["cpu_limit"],
        memory_request=values["memory_request"],
        memory_limit=values["memory_limit"],
        large_shm=values["large_shm"],
    )


def judge_environment(values: Values) -> Problems:
    """Return the problems of an environment asset as (field, sentence) pairs."""
    bad = [(field, f"{words} {wrong}.") for field, words, wrong in _find_bad_command_lines(values)]
    if bad:
        return bad
    return _find_setup_problems(Setup(build_environment(values)), "environment.", {})


_COMPUTE_FIELDS = {
    "gpus.devices": "gpu_devices",
    "gpus.portion": "gpu_portion",
    "gpus.memory": "gpu_memory",
}


def judge_compute(values: Values) -> Problems:
    """Return the problems of a compute resource as (field, sentence) pairs."""
    return _find_setup_problems(
        Setup(Environment("none"), build_compute(values)), "compute.", _COMPUTE_FIELDS
    )


def build_volume(values: Values) -> Volume:
    """Build a volume of a Spec from a data source's values.

    `credential` among the values is the row that it logs in with, or None.
    """
    origin, credential = values["origin"], values["credential"]
    shared: dict[str, Any] = {"path": values["path"]}
    secret = secret_name(credential) if credential else ""
    if values["kind"] in ("config-map", "secret"):
        shared["mode"] = int(origin["mode"], 8) if origin.get("mode") else None
    elif values["kind"] != "s3":
        shared["access"] = VolumeAccess(values["access"])
    match values["kind"]:
        case "git":
            git_access = None
            if credential is not None:
                is_key = credential.kind == "ssh-key"
                git_access = GitAccess.SSH_KEY if is_key else GitAccess.PASSWORD
            return Git(
                **shared,
                **_text_fields(origin, "repository", "branch", "revision"),
                secret=secret,
                credential=git_access,
            )
        case "pvc" if origin.get("way") != "new":
            return Claim(**shared, **_text_fields(origin, "claim"))
        case "pvc":
            modes = tuple(ClaimAccess(each) for each in origin.get("modes") or ()) or (
                ClaimAccess.ONE_NODE,
            )
            return NewClaim(
                **shared,
                **_text_fields(origin, "size", "storage_class"),
                modes=modes,
                ephemeral=bool(origin.get("ephemeral")),
            )
        case "nfs":
            return Nfs(**shared, **_text_fields(origin, "server", "export"))
        case "s3":
            return S3(
                **shared,
                **_text_fields(origin, "url", "bucket"),
                prefix=origin.get("below", ""),
                secret=secret,
            )
        case "host-path":
            return HostPath(
                **shared, **_text_fields(origin, "source"), propagate=bool(origin.get("propagate"))
            )
        case "config-map":
            return ConfigMap(
                **shared, **_text_fields(origin, "sub_path"), name=origin.get("configmap", "")
            )
        case _:
            return Secret(**shared, name=secret)


def _text_fields(origin: Values, *names: str) -> dict[str, Any]:
    return {name: origin.get(name, "") for name in names}


_SOURCE_FIELDS = {"secret": "credential", "name": "configmap", "prefix": "below"}
"""Fields of a volume that a data source has under another name."""


def judge_data_source(values: Values) -> Problems:
    """Return the problems of a data source as (field, sentence) pairs."""
    volume = build_volume(values)
    if isinstance(volume, Secret) and not volume.name:
        # The form itself reports a missing credential.
        return []
    where = f" of volume 1 ({volume.noun})"
    problems = [
        (field, text.replace(where, ""))
        for field, text in _find_setup_problems(
            Setup(Environment("none"), volumes=(volume,)), "volumes.0.", {}
        )
    ]
    if (
        isinstance(volume, Git)
        and volume.credential is GitAccess.PASSWORD
        and not volume.repository.startswith(("https://", "http://"))
    ):
        problems.append(
            (
                "repository",
                "The repository must be an https address where a user and password open it.",
            )
        )
    return [(_SOURCE_FIELDS.get(field, field), text) for field, text in problems]


MOST_KEYS = 64
LONGEST_PUBLIC = 1024


def judge_credential(values: Values) -> Problems:
    """Return the problems of a credential's public values as (field, sentence) pairs."""
    public: Values = values["public"]
    problems: list[tuple[str, str]] = []
    if values["kind"] == "registry":
        try:
            parse_registry_address(public.get("server", ""))
        except UserError as error:
            problems.append(("server", error.text))
    if values["kind"] in ("registry", "password") and not public.get("username"):
        problems.append(("username", "The user must be given."))
    if values["kind"] == "access-key" and not public.get("access_key_id"):
        problems.append(("access_key_id", "The access key id must be given."))
    for name in ("username", "access_key_id"):
        if wrong := value_rules.check_text(public.get(name, ""), LONGEST_PUBLIC):
            problems.append((name, f"It {wrong}."))
    return [*problems, *_find_bad_keys(public.get("keys", ()))]


def _find_bad_keys(keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(keys) > MOST_KEYS:
        yield "keys", f"There can be at most {MOST_KEYS} keys."
    for index, key in enumerate(keys):
        if wrong := value_rules.check_config_key(key):
            yield f"keys.{index}.key", f"The key {wrong}."


_JUDGES: Mapping[str, Callable[[Values], Problems]] = {
    "environment": judge_environment,
    "compute": judge_compute,
    "data-source": judge_data_source,
    "credential": judge_credential,
}


def find_problems(kind: str, values: Values) -> Problems:
    """Return what is wrong with an asset of this kind; a kind without rules has no problems."""
    judge = _JUDGES.get(kind)
    return judge(values) if judge else ()


def _find_bad_command_lines(values: Values) -> Iterator[tuple[str, str, str]]:
    for field, words in (("command", "The command"), ("args", "The arguments")):
        try:
            split_command_line(values[field])
        except InvalidCommandLine as error:
            yield field, words, str(error)


def _find_setup_problems(setup: Setup, prefix: str, names: Mapping[str, str]) -> Problems:
    wrong: Iterable[FieldProblem] = pod_problems.find_setup_problems(setup)
    pairs = [(field.removeprefix(prefix), f"{words} {text}.") for field, words, text in wrong]
    return [(names.get(field, field), text) for field, text in pairs]
