"""An asset's values as the parts of a Spec, so that one set of rules judges both. Nothing is asked
of a database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from console.errors import UserError
from environments.credentials import registry_address, secret_name
from workloads.specs import (
    S3,
    Access,
    BadWords,
    Claim,
    ClaimAccess,
    Compute,
    ConfigMap,
    Environment,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    NewClaim,
    Nfs,
    PullPolicy,
    Secret,
    Setup,
    Variable,
    Volume,
    pod_problems,
    rules,
    split_words,
)

Values = Mapping[str, Any]
Found = Sequence[tuple[str, str]]


def environment_of(values: Values) -> Environment:
    """An environment asset's values as the part of a Spec. Raises BadWords for a command or
    arguments that cannot be split.
    """
    return Environment(
        image=values["image"],
        pull_policy=PullPolicy(values["pull_policy"]) if values["pull_policy"] else None,
        command=split_words(values["command"]),
        args=split_words(values["args"]),
        variables=tuple(
            Variable(str(each.get("name", "")), str(each.get("value", "")))
            for each in values["variables"]
        ),
        working_dir=values["working_dir"],
    )


def compute_of(values: Values) -> Compute:
    """A compute resource's values as the part of a Spec."""
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


def judge_environment(values: Values) -> Found:
    """What is wrong with an environment asset: (field, sentence) pairs."""
    bad = [(field, f"{words} {wrong}.") for field, words, wrong in _bad_words(values)]
    if bad:
        return bad
    return _found(Setup(environment_of(values)), "environment.", {})


_COMPUTE_FIELDS = {
    "gpus.devices": "gpu_devices",
    "gpus.portion": "gpu_portion",
    "gpus.memory": "gpu_memory",
}


def judge_compute(values: Values) -> Found:
    """What is wrong with a compute resource: (field, sentence) pairs."""
    return _found(Setup(Environment("none"), compute_of(values)), "compute.", _COMPUTE_FIELDS)


def volume_of(values: Values) -> Volume:
    """A data source's values as a volume. `credential` is the row that it logs in with, or None."""
    origin, credential = values["origin"], values["credential"]
    shared: dict[str, Any] = {"path": values["path"]}
    secret = secret_name(credential) if credential else ""
    if values["kind"] in ("config-map", "secret"):
        shared["mode"] = int(origin["mode"], 8) if origin.get("mode") else None
    elif values["kind"] != "s3":
        shared["access"] = Access(values["access"])
    match values["kind"]:
        case "git":
            way = (
                None
                if credential is None
                else GitAccess.SSH_KEY
                if credential.kind == "ssh-key"
                else GitAccess.PASSWORD
            )
            return Git(
                **shared,
                **_texts(origin, "repository", "branch", "revision"),
                secret=secret,
                credential=way,
            )
        case "pvc" if origin.get("way") != "new":
            return Claim(**shared, **_texts(origin, "claim"))
        case "pvc":
            modes = tuple(ClaimAccess(each) for each in origin.get("modes") or ()) or (
                ClaimAccess.ONE_NODE,
            )
            return NewClaim(
                **shared,
                **_texts(origin, "size", "storage_class"),
                modes=modes,
                ephemeral=bool(origin.get("ephemeral")),
            )
        case "nfs":
            return Nfs(**shared, **_texts(origin, "server", "export"))
        case "s3":
            return S3(
                **shared,
                **_texts(origin, "url", "bucket"),
                prefix=origin.get("below", ""),
                secret=secret,
            )
        case "host-path":
            return HostPath(
                **shared, **_texts(origin, "source"), propagate=bool(origin.get("propagate"))
            )
        case "config-map":
            return ConfigMap(
                **shared, **_texts(origin, "sub_path"), name=origin.get("configmap", "")
            )
        case _:
            return Secret(**shared, name=secret)


def _texts(origin: Values, *names: str) -> dict[str, Any]:
    return {name: origin.get(name, "") for name in names}


_SOURCE_FIELDS = {"secret": "credential", "name": "configmap", "prefix": "below"}
"""Where a data source has a field of a volume under another name."""


def judge_data_source(values: Values) -> Found:
    """What is wrong with a data source: (field, sentence) pairs."""
    volume = volume_of(values)
    if isinstance(volume, Secret) and not volume.name:
        # The form asks for its credential.
        return []
    where = f" of volume 1 ({volume.noun})"
    found = [
        (field, text.replace(where, ""))
        for field, text in _found(Setup(Environment("none"), volumes=(volume,)), "volumes.0.", {})
    ]
    if (
        isinstance(volume, Git)
        and volume.credential is GitAccess.PASSWORD
        and not volume.repository.startswith(("https://", "http://"))
    ):
        found.append(
            (
                "repository",
                "The repository must be an https address where a user and password open it.",
            )
        )
    return [(_SOURCE_FIELDS.get(field, field), text) for field, text in found]


MOST_KEYS = 64
LONGEST_PUBLIC = 1024


def judge_credential(values: Values) -> Found:
    """What is wrong with what can be shown of a credential: (field, sentence) pairs."""
    public: Values = values["public"]
    found: list[tuple[str, str]] = []
    if values["kind"] == "registry":
        try:
            registry_address(public.get("server", ""))
        except UserError as error:
            found.append(("server", error.text))
    if values["kind"] in ("registry", "password") and not public.get("username"):
        found.append(("username", "The user must be given."))
    if values["kind"] == "access-key" and not public.get("access_key_id"):
        found.append(("access_key_id", "The access key id must be given."))
    for name in ("username", "access_key_id"):
        if wrong := rules.text(public.get(name, ""), LONGEST_PUBLIC):
            found.append((name, f"It {wrong}."))
    return [*found, *_bad_keys(public.get("keys", ()))]


def _bad_keys(keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(keys) > MOST_KEYS:
        yield "keys", f"There can be at most {MOST_KEYS} keys."
    for index, key in enumerate(keys):
        if wrong := rules.config_key(key):
            yield f"keys.{index}.key", f"The key {wrong}."


JUDGES: Mapping[str, Callable[[Values], Found]] = {
    "environment": judge_environment,
    "compute": judge_compute,
    "data-source": judge_data_source,
    "credential": judge_credential,
}


def _bad_words(values: Values) -> Iterator[tuple[str, str, str]]:
    for field, words in (("command", "The command"), ("args", "The arguments")):
        try:
            split_words(values[field])
        except BadWords as error:
            yield field, words, str(error)


def _found(setup: Setup, prefix: str, names: Mapping[str, str]) -> Found:
    wrong: Iterable[pod_problems.Wrong] = pod_problems.of_setup(setup)
    pairs = [(field.removeprefix(prefix), f"{words} {text}.") for field, words, text in wrong]
    return [(names.get(field, field), text) for field, text in pairs]
