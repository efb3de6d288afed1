"""Everything about one kind of pod as a form: the workers' setup and the master's changes are both
made of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django import forms

from console.typed import Rows, Typed, as_rows
from environments.forms import ComputeFields, typed_compute, words
from workloads import asset_rules
from workloads.forms import rows
from workloads.forms.credentials import Shared
from workloads.specs import (
    BadWords,
    Compute,
    Environment,
    PullPolicy,
    Seccomp,
    Security,
    Setup,
    Topology,
    join_words,
    split_words,
)

YES_NO = [("", "As the image and the cluster have it"), ("yes", "Yes"), ("no", "No")]
ROWS: Mapping[str, Callable[..., Any]] = {
    "variables": rows.VariableRow,
    "extended": rows.ExtendedRow,
    "volumes": rows.VolumeRow,
    "tolerations": rows.TolerationRow,
    "annotations": rows.AnnotationRow,
    "labels": rows.PairRow,
}
SECURITY = (
    "uid",
    "gid",
    "supplemental_groups",
    "non_root",
    "read_only_root",
    "privilege_escalation",
    "capabilities",
    "host_ipc",
    "host_network",
    "seccomp",
)
GPUS = ("gpu_devices", "gpu_share", "gpu_percent", "gpu_memory")
PLACES = {
    "environment": {},
    "compute": {
        "gpus.devices": "gpu_devices",
        "gpus.portion": "gpu_percent",
        "gpus.memory": "gpu_memory",
    },
    "security": {},
    "topology": {"": "topology_key", "key": "topology_key", "required": "topology_required"},
}
"""The parts of a Setup whose fields stand in the form without the part's name, and which of them
are called otherwise.
"""


class WordsField(forms.CharField):
    """A command or arguments: one text that is split as a shell does. Its value are the words."""

    def to_python(self, value: Any) -> Any:
        try:
            return split_words(super().to_python(value) or "")
        except BadWords as error:
            raise forms.ValidationError(f"{self.label} {error}.") from error

    def run_validators(self, value: Any) -> None:
        return None


def word_list(label: str, help_text: str) -> WordsField:
    return WordsField(
        label=label,
        help_text=help_text,
        required=False,
        widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
    )


class PodForm(ComputeFields):
    """The fields of a Setup. Empty ones are left to the image, the cluster or the chosen asset.

    `storage_classes` are those of the cluster, for a new claim to choose from; `credentials` those
    that variables can be had from.
    """

    image = words("Image", "As registry.example.com/team/train:1.2")
    pull_policy = forms.ChoiceField(
        label="Image pull policy",
        choices=[("", "The cluster's default"), *((each.value, each.value) for each in PullPolicy)],
        required=False,
        help_text=(
            "The cluster's default: always for the tag latest, else when the image is not there "
            "yet."
        ),
    )
    pull_secrets = words(
        "Pull secrets", "Names of Secrets in the project's namespace, separated by spaces."
    )
    command = word_list("The command", "Words are split at spaces, quotes keep them together.")
    args = word_list("The arguments", "Split likewise.")
    working_dir = words("Working directory", "An absolute path in the container.")
    node_type = words("Node type", "Only nodes whose label run.ai/type has this value.")
    node_pools = words(
        "Node pools, in order",
        "Names separated by spaces; the first with room is taken. Empty: any node will do.",
    )
    topology_key = words(
        "Topology: keep the pods together by",
        "The key of a node label, such as topology.kubernetes.io/zone or kubernetes.io/hostname.",
    )
    topology_required = forms.ChoiceField(
        label="How strictly",
        choices=[
            ("", "Preferred: apart rather than not at all"),
            ("required", "Required: it waits until they can be together"),
        ],
        required=False,
    )
    uid = forms.IntegerField(label="User ID", required=False)
    gid = forms.IntegerField(label="Group ID", required=False)
    supplemental_groups = words("Supplementary groups", "Group IDs, separated by spaces.")
    non_root = forms.ChoiceField(label="Refuse to run as root", choices=YES_NO, required=False)
    read_only_root = forms.BooleanField(label="Read-only root file system", required=False)
    privilege_escalation = forms.ChoiceField(
        label="Privilege escalation allowed", choices=YES_NO, required=False
    )
    capabilities = words("Linux capabilities", "As SYS_PTRACE IPC_LOCK, separated by spaces.")
    host_ipc = forms.BooleanField(label="Use the host's IPC", required=False)
    host_network = forms.BooleanField(label="Use the host's network", required=False)
    seccomp = forms.ChoiceField(
        label="Seccomp profile",
        choices=[("", "The cluster's default"), *((each.value, each.value) for each in Seccomp)],
        required=False,
    )

    def __init__(
        self,
        data: Typed,
        *,
        storage_classes: Sequence[str] = (),
        credentials: Sequence[Shared] = (),
        quiet: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(data, quiet=quiet, **more)
        self.fields["command"].label = "Command"
        self.fields["args"].label = "Arguments"
        self.storage_classes = storage_classes
        self.rows = {
            name: Rows(name, row, data, quiet=quiet)
            for name, row in self._kinds(credentials).items()
        }

    def _kinds(self, credentials: Sequence[Shared]) -> Mapping[str, Callable[..., Any]]:
        return {**ROWS, "variables": partial(rows.VariableRow, credentials=credentials)}

    def clean_supplemental_groups(self) -> tuple[int, ...]:
        given = str(self.cleaned_data["supplemental_groups"]).replace(",", " ").split()
        if not all(each.isdecimal() and each.isascii() and len(each) < 12 for each in given):
            raise forms.ValidationError(
                "Supplementary groups must be whole numbers, separated by spaces."
            )
        return tuple(map(int, given))

    def clean_node_pools(self) -> tuple[str, ...]:
        return tuple(str(self.cleaned_data["node_pools"]).replace(",", " ").split())

    def speak(self, quiet: bool = False) -> None:
        """From now on errors show, those of rows too; or, quiet, they do not."""
        self.quiet = quiet
        for each in self.rows.values():
            each.quiet = quiet

    @property
    def wrong_rows(self) -> bool:
        """Whether errors of rows show."""
        return not self.quiet and any(each.is_wrong for each in self.rows.values())

    @property
    def has_errors(self) -> bool:
        return self.is_wrong or any(each.is_wrong for each in self.rows.values())

    def listed(self, name: str) -> tuple[Any, ...]:
        """The parts of a Spec that the rows of this name make."""
        return tuple(row.part() for row in self.rows[name].filled)

    @property
    def environment(self) -> Environment:
        return Environment(
            image=self.read("image", ""),
            pull_policy=PullPolicy(chosen) if (chosen := self.read("pull_policy")) else None,
            pull_secrets=tuple(self.read("pull_secrets", "").split()),
            command=self.read("command", ()),
            args=self.read("args", ()),
            variables=self.listed("variables"),
            working_dir=self.read("working_dir", ""),
        )

    @property
    def compute(self) -> Compute:
        return asset_rules.compute_of(self.compute_values)

    @property
    def topology(self) -> Topology | None:
        key, required = self.read("topology_key", ""), self.read("topology_required") == "required"
        return Topology(key, required) if key or required else None

    @property
    def security(self) -> Security:
        return Security(
            uid=self.read("uid"),
            gid=self.read("gid"),
            supplemental_groups=self.read("supplemental_groups", ()),
            non_root=_YES[self.read("non_root", "")],
            read_only_root=bool(self.read("read_only_root")),
            privilege_escalation=_YES[self.read("privilege_escalation", "")],
            capabilities=tuple(self.read("capabilities", "").upper().split()),
            host_ipc=bool(self.read("host_ipc")),
            host_network=bool(self.read("host_network")),
            seccomp=Seccomp(chosen) if (chosen := self.read("seccomp")) else None,
        )

    def blame_path(self, path: str, text: str) -> None:
        """Put a problem of a Setup, as "environment.image" or "volumes.1.path", beside its field;
        else above all fields.
        """
        part, _, rest = path.partition(".")
        if part in PLACES:
            path = PLACES[part].get(rest, rest)
        name, _, rest = path.partition(".")
        if name in self.rows and rest:
            number, _, field = rest.partition(".")
            self._blame_row(name, int(number), field, text)
        elif name in self.rows:
            self.rows[name].blame(text)
        else:
            self.blame(name if name in self.fields else None, text)

    def _blame_row(self, name: str, number: int, field: str, text: str) -> None:
        filled = self.rows[name].filled
        if not 0 <= number < len(filled):
            self.blame(None, text)
            return
        row = filled[number]
        row.blame(field if field in row.fields else rows.VOLUME_FIELDS.get(field, field), text)


_YES = {"": None, "yes": True, "no": False}
_YES_WORDS = {value: word for word, value in _YES.items()}


def typed_environment(environment: Environment) -> Typed:
    """An environment as it would be typed."""
    texts = {
        "image": environment.image,
        "pull_policy": environment.pull_policy.value if environment.pull_policy else "",
        "pull_secrets": " ".join(environment.pull_secrets),
        "command": join_words(environment.command),
        "args": join_words(environment.args),
        "working_dir": environment.working_dir,
    }
    return _single(texts) | as_rows("variables", map(rows.typed_variable, environment.variables))


def compute_values(compute: Compute) -> dict[str, Any]:
    """By the names of the fields of a ComputeResource."""
    gpus = compute.gpus
    fields = ("cpu_request", "cpu_limit", "memory_request", "memory_limit", "large_shm")
    given = {name: getattr(compute, name) for name in fields}
    return given | {
        "gpu_devices": gpus.device_count,
        "gpu_portion": gpus.portion,
        "gpu_memory": gpus.memory,
    }


def typed_security(security: Security) -> Typed:
    texts = {
        "uid": "" if security.uid is None else str(security.uid),
        "gid": "" if security.gid is None else str(security.gid),
        "supplemental_groups": " ".join(map(str, security.supplemental_groups)),
        "non_root": _YES_WORDS[security.non_root],
        "privilege_escalation": _YES_WORDS[security.privilege_escalation],
        "capabilities": " ".join(security.capabilities),
        "seccomp": security.seccomp.value if security.seccomp else "",
    }
    checks = {
        name: ["on"]
        for name in ("read_only_root", "host_ipc", "host_network")
        if getattr(security, name)
    }
    return _single(texts) | checks


def typed_setup(setup: Setup) -> Typed:
    """A whole setup as it would be typed."""
    listed: Iterable[Typed] = (
        as_rows("extended", map(rows.typed_extended, setup.compute.extended)),
        as_rows("volumes", map(rows.typed_volume, setup.volumes)),
        as_rows("tolerations", map(rows.typed_toleration, setup.tolerations)),
        as_rows("annotations", map(rows.typed_pair, setup.annotations)),
        as_rows("labels", map(rows.typed_pair, setup.labels)),
        _single(
            {"node_type": setup.node_type, "node_pools": " ".join(setup.node_pools)}
            | _typed_topology(setup.topology)
        ),
    )
    typed = (
        typed_environment(setup.environment)
        | typed_compute(compute_values(setup.compute))
        | typed_security(setup.security)
    )
    for each in listed:
        typed |= each
    return typed


def _typed_topology(topology: Topology | None) -> dict[str, str]:
    if topology is None:
        return {"topology_key": "", "topology_required": ""}
    return {
        "topology_key": topology.key,
        "topology_required": "required" if topology.required else "",
    }


def _single(texts: Mapping[str, str]) -> Typed:
    return {name: [text] for name, text in texts.items()}
