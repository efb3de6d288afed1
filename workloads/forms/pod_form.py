"""A form of everything about one kind of pod.

The workers' setup and the master's changes both use it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django import forms

from console.typed_forms import FormRows, TypedValues, build_row_values
from environments.forms import ComputeFields, build_typed_compute, text_field
from workloads import asset_rules
from workloads.forms import row_forms
from workloads.forms.credential_choices import CredentialChoice
from workloads.specs import (
    Compute,
    Environment,
    InvalidCommandLine,
    PullPolicy,
    SeccompProfile,
    Security,
    Setup,
    Topology,
    join_command_line,
    split_command_line,
)

YES_NO_CHOICES = [("", "As the image and the cluster have it"), ("yes", "Yes"), ("no", "No")]
ROW_FORMS: Mapping[str, Callable[..., Any]] = {
    "variables": row_forms.VariableRow,
    "extended": row_forms.ExtendedResourceRow,
    "volumes": row_forms.VolumeRow,
    "tolerations": row_forms.TolerationRow,
    "annotations": row_forms.AnnotationRow,
    "labels": row_forms.PairRow,
}
SECURITY_FIELDS = (
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
GPU_FIELDS = ("gpu_devices", "gpu_share", "gpu_percent", "gpu_memory")
PART_FIELDS = {
    "environment": {},
    "compute": {
        "gpus.devices": "gpu_devices",
        "gpus.portion": "gpu_percent",
        "gpus.memory": "gpu_memory",
    },
    "security": {},
    "topology": {"": "topology_key", "key": "topology_key", "required": "topology_required"},
}
"""The parts of a Setup whose fields stand in the form without the part's name.

For each part, its fields that the form names otherwise.
"""


class CommandLineField(forms.CharField):
    """A command or arguments: one text that is split as a shell does. Its value is the words."""

    def to_python(self, value: Any) -> Any:
        try:
            return split_command_line(super().to_python(value) or "")
        except InvalidCommandLine as error:
            raise forms.ValidationError(f"{self.label} {error}.") from error

    def run_validators(self, value: Any) -> None:
        # The value is a tuple of words, and CharField's validators expect a text; `specs` checks
        # the words.
        return None


def build_command_line_field(label: str, help_text: str) -> CommandLineField:
    return CommandLineField(
        label=label,
        help_text=help_text,
        required=False,
        widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
    )


class PodForm(ComputeFields):
    """The fields of a Setup. Empty ones are left to the image, the cluster or the chosen asset.

    `storage_classes` are those of the cluster, for a new claim to choose from; `credentials` are
    those that variables can use.
    """

    image = text_field("Image", "As registry.example.com/team/train:1.2")
    pull_policy = forms.ChoiceField(
        label="Image pull policy",
        choices=[("", "The cluster's default"), *((each.value, each.value) for each in PullPolicy)],
        required=False,
        help_text=(
            "The cluster's default: always for the tag latest, else when the image is not there "
            "yet."
        ),
    )
    pull_secrets = text_field(
        "Pull secrets", "Names of Secrets in the project's namespace, separated by spaces."
    )
    command = build_command_line_field(
        "The command", "Words are split at spaces, quotes keep them together."
    )
    args = build_command_line_field("The arguments", "Split likewise.")
    working_dir = text_field("Working directory", "An absolute path in the container.")
    node_type = text_field("Node type", "Only nodes whose label run.ai/type has this value.")
    node_pools = text_field(
        "Node pools, in order",
        "Names separated by spaces; the first with room is taken. Empty: any node will do.",
    )
    topology_key = text_field(
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
    supplemental_groups = text_field("Supplementary groups", "Group IDs, separated by spaces.")
    non_root = forms.ChoiceField(
        label="Refuse to run as root", choices=YES_NO_CHOICES, required=False
    )
    read_only_root = forms.BooleanField(label="Read-only root file system", required=False)
    privilege_escalation = forms.ChoiceField(
        label="Privilege escalation allowed", choices=YES_NO_CHOICES, required=False
    )
    capabilities = text_field("Linux capabilities", "As SYS_PTRACE IPC_LOCK, separated by spaces.")
    host_ipc = forms.BooleanField(label="Use the host's IPC", required=False)
    host_network = forms.BooleanField(label="Use the host's network", required=False)
    seccomp = forms.ChoiceField(
        label="Seccomp profile",
        choices=[
            ("", "The cluster's default"),
            *((each.value, each.value) for each in SeccompProfile),
        ],
        required=False,
    )

    def __init__(
        self,
        data: TypedValues,
        *,
        storage_classes: Sequence[str] = (),
        credentials: Sequence[CredentialChoice] = (),
        quiet: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(data, quiet=quiet, **more)
        self.fields["command"].label = "Command"
        self.fields["args"].label = "Arguments"
        self.storage_classes = storage_classes
        self.rows = {
            name: FormRows(name, row, data, quiet=quiet)
            for name, row in self._build_row_forms(credentials).items()
        }

    def _build_row_forms(
        self, credentials: Sequence[CredentialChoice]
    ) -> Mapping[str, Callable[..., Any]]:
        return {**ROW_FORMS, "variables": partial(row_forms.VariableRow, credentials=credentials)}

    def clean_supplemental_groups(self) -> tuple[int, ...]:
        groups = str(self.cleaned_data["supplemental_groups"]).replace(",", " ").split()
        if not all(each.isdecimal() and each.isascii() and len(each) < 12 for each in groups):
            raise forms.ValidationError(
                "Supplementary groups must be whole numbers, separated by spaces."
            )
        return tuple(map(int, groups))

    def clean_node_pools(self) -> tuple[str, ...]:
        return tuple(str(self.cleaned_data["node_pools"]).replace(",", " ").split())

    def show_errors(self, quiet: bool = False) -> None:
        """Show errors from now on, those of rows too; with `quiet`, hide them."""
        self.quiet = quiet
        for each in self.rows.values():
            each.quiet = quiet

    @property
    def shows_row_errors(self) -> bool:
        """Tell whether errors of rows show."""
        return not self.quiet and any(each.has_errors for each in self.rows.values())

    @property
    def has_field_or_row_errors(self) -> bool:
        """Tell whether a field or a row is wrong, whether its error shows or not."""
        return self.has_errors or any(each.has_errors for each in self.rows.values())

    def build_row_parts(self, name: str) -> tuple[Any, ...]:
        """Return the parts of a Spec that the rows of this name make."""
        return tuple(row.build_part() for row in self.rows[name].filled_rows)

    @property
    def environment(self) -> Environment:
        return Environment(
            image=self.read("image", ""),
            pull_policy=PullPolicy(chosen) if (chosen := self.read("pull_policy")) else None,
            pull_secrets=tuple(self.read("pull_secrets", "").split()),
            command=self.read("command", ()),
            args=self.read("args", ()),
            variables=self.build_row_parts("variables"),
            working_dir=self.read("working_dir", ""),
        )

    @property
    def compute(self) -> Compute:
        return asset_rules.build_compute(self.compute_values)

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
            non_root=_YES_NO_VALUES[self.read("non_root", "")],
            read_only_root=bool(self.read("read_only_root")),
            privilege_escalation=_YES_NO_VALUES[self.read("privilege_escalation", "")],
            capabilities=tuple(self.read("capabilities", "").upper().split()),
            host_ipc=bool(self.read("host_ipc")),
            host_network=bool(self.read("host_network")),
            seccomp=SeccompProfile(chosen) if (chosen := self.read("seccomp")) else None,
        )

    def add_error_at_path(self, path: str, text: str) -> None:
        """Add a problem at a path of a Setup as an error of its field.

        Paths are such as "environment.image" or "volumes.1.path"; without a field of its own the
        error stands above all fields.
        """
        part, _, rest = path.partition(".")
        if part in PART_FIELDS:
            path = PART_FIELDS[part].get(rest, rest)
        name, _, rest = path.partition(".")
        if name in self.rows and rest:
            number, _, field = rest.partition(".")
            self._add_row_error(name, int(number), field, text)
        elif name in self.rows:
            self.rows[name].add_error_once(text)
        else:
            self.add_error_once(name if name in self.fields else None, text)

    def _add_row_error(self, name: str, number: int, field: str, text: str) -> None:
        filled = self.rows[name].filled_rows
        if not 0 <= number < len(filled):
            self.add_error_once(None, text)
            return
        row = filled[number]
        row.add_error_once(
            field if field in row.fields else row_forms.RENAMED_VOLUME_FIELDS.get(field, field),
            text,
        )


_YES_NO_VALUES = {"": None, "yes": True, "no": False}
_YES_NO_WORDS = {value: word for word, value in _YES_NO_VALUES.items()}


def build_environment_values(environment: Environment) -> TypedValues:
    """Return an environment as it would be typed."""
    texts = {
        "image": environment.image,
        "pull_policy": environment.pull_policy.value if environment.pull_policy else "",
        "pull_secrets": " ".join(environment.pull_secrets),
        "command": join_command_line(environment.command),
        "args": join_command_line(environment.args),
        "working_dir": environment.working_dir,
    }
    return _wrap_in_lists(texts) | build_row_values(
        "variables", map(row_forms.build_variable_texts, environment.variables)
    )


def build_compute_values(compute: Compute) -> dict[str, Any]:
    """Return compute by the names of the fields of a ComputeResource."""
    gpus = compute.gpus
    fields = ("cpu_request", "cpu_limit", "memory_request", "memory_limit", "large_shm")
    values = {name: getattr(compute, name) for name in fields}
    return values | {
        "gpu_devices": gpus.device_count,
        "gpu_portion": gpus.portion,
        "gpu_memory": gpus.memory,
    }


def build_security_values(security: Security) -> TypedValues:
    texts = {
        "uid": "" if security.uid is None else str(security.uid),
        "gid": "" if security.gid is None else str(security.gid),
        "supplemental_groups": " ".join(map(str, security.supplemental_groups)),
        "non_root": _YES_NO_WORDS[security.non_root],
        "privilege_escalation": _YES_NO_WORDS[security.privilege_escalation],
        "capabilities": " ".join(security.capabilities),
        "seccomp": security.seccomp.value if security.seccomp else "",
    }
    checks = {
        name: ["on"]
        for name in ("read_only_root", "host_ipc", "host_network")
        if getattr(security, name)
    }
    return _wrap_in_lists(texts) | checks


def build_setup_values(setup: Setup) -> TypedValues:
    """Return a whole setup as it would be typed."""
    row_values: Iterable[TypedValues] = (
        build_row_values("extended", map(row_forms.build_extended_texts, setup.compute.extended)),
        build_row_values("volumes", map(row_forms.build_volume_texts, setup.volumes)),
        build_row_values("tolerations", map(row_forms.build_toleration_texts, setup.tolerations)),
        build_row_values("annotations", map(row_forms.build_pair_texts, setup.annotations)),
        build_row_values("labels", map(row_forms.build_pair_texts, setup.labels)),
        _wrap_in_lists(
            {"node_type": setup.node_type, "node_pools": " ".join(setup.node_pools)}
            | _build_topology_texts(setup.topology)
        ),
    )
    typed = (
        build_environment_values(setup.environment)
        | build_typed_compute(build_compute_values(setup.compute))
        | build_security_values(setup.security)
    )
    for each in row_values:
        typed |= each
    return typed


def _build_topology_texts(topology: Topology | None) -> dict[str, str]:
    if topology is None:
        return {"topology_key": "", "topology_required": ""}
    return {
        "topology_key": topology.key,
        "topology_required": "required" if topology.required else "",
    }


def _wrap_in_lists(texts: Mapping[str, str]) -> TypedValues:
    return {name: [text] for name, text in texts.items()}
