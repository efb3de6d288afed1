"""Values of flags as the dialects write them, turned into arguments of `muster submit`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster_cli.actions import moments
from muster_cli.dialects.tables import Reader
from muster_cli.errors import UsageProblem

Values = Mapping[str, Any]
READ_ONLY = "readOnly=true"
MOST_GPUS = 1e6
"""More than any node has: nan and inf are no numbers of GPUs either."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedVolume:
    """A volume that a dialect writes as KEY=VALUE,WORD,...

    `keys` are `muster`'s by the dialect's; `words` stand alone and mean KEY=VALUE; `refused` keys
    say what to use instead. `otherwise` holds where none of `words` with the same key is given.
    """

    flag: str
    keys: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str, values: Values) -> list[str]:
        """Return the argument of `muster` for what was typed. Raises UsageProblem."""
        parts = list(self.always)
        for part in filter(None, text.split(",")):
            name, sign, value = part.partition("=")
            key = name.strip().lower()
            if key in self.refused:
                raise UsageProblem(f"{name} in '{_hide(text)}' is not taken.", self.refused[key])
            if key in self.words and value.lower() in ("", "true", "false"):
                parts += [self.words[key]] if value.lower() != "false" else []
            elif key in self.keys and sign:
                parts.append(f"{self.keys[key]}={value}")
            else:
                accepted_keys = ", ".join([*self.keys, *self.words])
                raise UsageProblem(
                    f"'{name}' in '{_hide(text)}' is not known.", f"It takes {accepted_keys}."
                )
        part_names = {each.partition("=")[0] for each in parts}
        parts += [each for each in self.otherwise if each.partition("=")[0] not in part_names]
        return [f"{self.flag}={','.join(parts)}"]


def _hide(text: str) -> str:
    """Return a text without values: some are passwords."""
    return ",".join(each.partition("=")[0] for each in text.split(","))


_CLAIM = {"claimname": "claimName", "path": "path"}
_ACCESS = {
    "accessmode-rwo": "claimInfo.accessModes.readWriteOnce=true",
    "accessmode-rom": "claimInfo.accessModes.readOnlyMany=true",
    "accessmode-rox": "claimInfo.accessModes.readOnlyMany=true",
    "accessmode-rwm": "claimInfo.accessModes.readWriteMany=true",
    "accessmode-rwx": "claimInfo.accessModes.readWriteMany=true",
}
read_existing_claim = KeyedVolume(
    "--pvc", _CLAIM, {"readonly": READ_ONLY, "ro": READ_ONLY}, ("existingPvc=true",)
)
read_new_claim = KeyedVolume(
    "--pvc",
    _CLAIM
    | {
        "storageclass": "claimInfo.storageClass",
        "size": "claimInfo.size",
        "volumemode": "claimInfo.volumeMode",
    },
    _ACCESS | {"readonly": READ_ONLY, "ro": READ_ONLY, "ephemeral": "ephemeral=true"},
    ("existingPvc=false",),
)
_WRITABLE = {"readwrite": "readOnly=false", "readonly": READ_ONLY}
read_nfs = KeyedVolume(
    "--nfs",
    {"server": "server", "path": "path", "mountpath": "mountPath", "mount": "mountPath"},
    _WRITABLE,
    otherwise=(READ_ONLY,),
)
read_host_path = KeyedVolume(
    "--host-path",
    {
        "path": "path",
        "mount": "mountPath",
        "mountpath": "mountPath",
        "mount-propagation": "mountPropagation",
    },
    _WRITABLE,
    otherwise=(READ_ONLY,),
)
_GIT_ACCESS = "Make a credential with `muster credential create`, and name it as secret=NAME."
read_git = KeyedVolume(
    "--git",
    {
        "source": "repository",
        "repository": "repository",
        "branch": "branch",
        "rev": "revision",
        "revision": "revision",
        "target": "path",
        "path": "path",
        "secret": "secretRef.name",
    },
    refused={
        "username": _GIT_ACCESS,
        "password": _GIT_ACCESS,
        "name": "Volumes are named by Muster: leave it out.",
    },
)
_S3_ACCESS = "Make a credential with `muster credential create`: accesskey-secret=NAME names it."
read_bucket = KeyedVolume(
    "--s3",
    {
        "bucket": "bucket",
        "prefix": "prefix",
        "url": "url",
        "target": "path",
        "path": "path",
        "accesskey-secret": "accessKeySecret",
    },
    refused={
        "key": _S3_ACCESS,
        "secret": _S3_ACCESS,
        "name": "Volumes are named by Muster: leave it out.",
    },
)
read_config_map = KeyedVolume(
    "--config-map",
    {
        "name": "configMap",
        "target": "mountPath",
        "path": "mountPath",
        "subpath": "subPath",
    },
)


def read_old_volume(text: str, values: Values) -> list[str]:
    """Read SOURCE:MOUNT[:ro|rw][:NFS-HOST]; --nfs-server is the host where none is given."""
    source, *others = text.split(":")
    if not others or not source or len(others) > 3:
        raise UsageProblem(f"'{text}' is not as SOURCE:MOUNT[:ro|rw][:NFS-HOST].")
    mount, *more = others
    mode = more.pop(0) if more and more[0] in ("ro", "rw") else "rw"
    server = more.pop(0) if more else str(values.get("--nfs-server") or "")
    if more:
        raise UsageProblem(f"'{text}' is not as SOURCE:MOUNT[:ro|rw][:NFS-HOST].")
    end = f"path={source},mountPath={mount},readOnly={'true' if mode == 'ro' else 'false'}"
    _refuse_commas(source, mount, server)
    return [f"--nfs=server={server},{end}" if server else f"--host-path={end}"]


def read_claim_mount(text: str, values: Values) -> list[str]:
    """Read Arena's CLAIM:PATH."""
    claim, sign, path = text.partition(":")
    if not (claim and sign and path):
        raise UsageProblem(f"'{text}' is not as CLAIM:PATH.")
    _refuse_commas(claim, path)
    return [f"--pvc=claimName={claim},path={path},existingPvc=true"]


def read_host_mount(text: str, values: Values) -> list[str]:
    """Read Arena's HOST-PATH[:PATH]."""
    source, _, mount = text.partition(":")
    _refuse_commas(source, mount)
    return [f"--host-path=path={source},mountPath={mount or source},readOnly=false"]


def _refuse_commas(*texts: str) -> None:
    for each in texts:
        if "," in each:
            raise UsageProblem(f"'{each}' holds a comma.", "Use a file: `muster submit -f`.")


def read_gpus(text: str, values: Values) -> list[str]:
    """Read a number of GPUs; below 1 it is a part of one."""
    return _read_gpu_count(text, "--")


def read_master_gpus(text: str, values: Values) -> list[str]:
    """Read the GPUs of the master likewise."""
    return _read_gpu_count(text, "--master-")


def _read_gpu_count(text: str, prefix: str) -> list[str]:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if 0 < number < 1:
        # Of one GPU, whatever the workers or a template have.
        return [f"{prefix}gpus=1", f"{prefix}gpu-portion={text}"]
    if not 0 <= number < MOST_GPUS or number != int(number):
        raise UsageProblem(
            f"{text} is no number of GPUs.", "It is a whole number, or a part of one GPU as 0.5."
        )
    return [f"{prefix}gpus={int(number)}"]


def read_gpu_request_type(text: str, values: Values) -> list[str]:
    """Check that the way of sharing a GPU is the one whose amount is given."""
    kind = text.lower()
    if kind == "migprofile":
        raise UsageProblem(
            "--gpu-request-type migProfile is not taken here.",
            "Ask for the MIG device as --extended-resource nvidia.com/mig-1g.5gb=1.",
        )
    if kind not in ("portion", "memory"):
        raise UsageProblem(f"--gpu-request-type is portion or memory, and not {text}.")
    if not values.get(f"--gpu-{kind}-request"):
        raise UsageProblem(f"--gpu-request-type {kind} needs --gpu-{kind}-request.")
    return []


def build_limit_reader(request: str) -> Reader:
    """Build the reader of a limit that can only be the same as the request."""

    def read_limit(text: str, values: Values) -> list[str]:
        if text != values.get(request):
            raise UsageProblem(
                f"A limit of {text} that differs from {request} is not taken here.",
                "A share of a GPU is a request and a limit: leave the limit out.",
            )
        return []

    return read_limit


def build_seconds_reader(flag: str) -> Reader:
    """Build the reader of a duration that `muster` takes in seconds."""
    return lambda text, values: [f"{flag}={moments.parse_duration(text)}"]


def build_list_reader(flag: str) -> Reader:
    """Build the reader of names with commas or spaces between them."""
    return lambda text, values: [f"{flag}={text.replace(',', ' ')}"]


def build_both_reader(request: str, limit: str) -> Reader:
    """Build the reader of an amount that is a request and a limit, as Arena means it."""
    return lambda text, values: [f"{request}={text}", f"{limit}={text}"]


def build_suffix_reader(flag: str, suffix: str) -> Reader:
    """Build the reader of a value that gets an end, as a topology key gets its kind."""
    return lambda text, values: [f"{flag}={text}{suffix}"]


def build_fixed_reader(*arguments: str) -> Reader:
    """Build the reader of a switch that means these arguments."""
    return lambda text, values: list(arguments)


def read_current_user(text: str, values: Values) -> list[str]:
    """Return the user and the group that this process runs as."""
    return [f"--run-as-uid={os.getuid()}", f"--run-as-gid={os.getgid()}"]


def read_user_source(text: str, values: Values) -> list[str]:
    """Check where the user comes from: the image, or --run-as-uid."""
    if text.lower() != "fromtheimage":
        raise UsageProblem(
            f"--user-group-source {text} is not taken here.",
            "It is fromTheImage; another user is given as --run-as-uid and --run-as-gid.",
        )
    return []


def read_pairs_toleration(text: str, values: Values) -> list[str]:
    """Read key=K,operator=Exists|Equal,value=V,effect=E."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if name.lower() not in ("key", "operator", "value", "effect") or not sign:
            raise UsageProblem(
                f"'{part}' of --toleration is not taken here.",
                "It takes key, operator, value and effect; seconds by `muster submit -f`.",
            )
        fields[name.lower()] = value
    return _build_toleration(text, fields)


def read_arena_toleration(text: str, values: Values) -> list[str]:
    """Read KEY=VALUE:EFFECT,OPERATOR."""
    if text == "all":
        raise UsageProblem(
            "--toleration all is not taken here.", "Name each taint: KEY=VALUE:EFFECT,OPERATOR."
        )
    rest, _, operator = text.partition(",")
    pair, _, effect = rest.partition(":")
    key, _, value = pair.partition("=")
    return _build_toleration(
        text, {"key": key, "operator": operator or "Equal", "value": value, "effect": effect}
    )


def _build_toleration(text: str, fields: Mapping[str, str]) -> list[str]:
    key, value = fields.get("key", ""), fields.get("value", "")
    operator = fields.get("operator") or ("Equal" if value else "Exists")
    if not key or operator not in ("Exists", "Equal") or set(key + value) & set(":="):
        raise UsageProblem(f"'{text}' is no toleration that is taken here.", "It needs a key.")
    pair = f"{key}={value}" if operator == "Equal" else key
    return [f"--toleration={pair}" + (f":{fields['effect']}" if fields.get("effect") else "")]


def read_shared_memory(text: str, values: Values) -> list[str]:
    """Read the size of /dev/shm."""
    _refuse_commas(text)
    return [f"--empty-dir=path=/dev/shm,medium=Memory,sizeLimit={text}"]


def read_device(text: str, values: Values) -> list[str]:
    """Read Arena's RESOURCE=COUNT of accelerators other than NVIDIA's."""
    if text.startswith("nvidia.com/gpu="):
        raise UsageProblem("--device is for other devices than NVIDIA's.", "Use --gpus.")
    return [f"--extended-resource={text}"]
