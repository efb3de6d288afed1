"""Rules for single values.

Each `check_` function returns what is wrong in words that follow the value's name ("must ..."), or
"" where nothing is.
"""

import re
from decimal import ROUND_CEILING, Decimal
from urllib.parse import SplitResult, urlsplit

from workloads import quantities
from workloads.specs.choices import Framework

MAX_NAME_LENGTH = 50
MAX_LABEL_LENGTH = 63
MAX_TEXT_LENGTH = 32 * 1024
MAX_PATH_LENGTH = 1024
MAX_IMAGE_LENGTH = 512

_RESERVED_PREFIXES = (
    *(
        "muster.dev",
        "training.kubeflow.org",
        "batch.kubernetes.io",
        "app.kubernetes.io/managed-by",
        "pod-group-name",
        "job-name",
    ),
    *("trainer.kubeflow.org/", "jobset.sigs.k8s.io/"),
    *("kueue.x-k8s.io/", "run.ai/", "runai/"),
)
_RESERVED_KEYS = frozenset(
    (
        "controller-uid",
        "gpu-fraction",
        "gpu-fraction-container-name",
        "gpu-memory",
        "gpu-fraction-num-devices",
        "kai.scheduler/node-pool",
        "kai.scheduler/queue",
        "kai.scheduler/preemptibility",
        "kai.scheduler/preemption-delay",
        "priorityClassName",
        "runai-gpu-group",
    )
)

_SELECTED_BY_FIELD = {"run.ai/type": "the node type", "kai.scheduler/node-pool": "the node pools"}
"""Labels of nodes that are chosen elsewhere, where project and policies judge them."""

_GPU_VENDORS = ("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai")

_SMALLER_UNITS = {
    **{"k": "", "M": "k", "G": "M", "T": "G", "P": "T", "E": "P"},
    **{"Ki": "", "Mi": "Ki", "Gi": "Mi", "Ti": "Gi", "Pi": "Ti", "Ei": "Pi"},
}
"""The unit of quantities below each."""

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][-._A-Za-z0-9]*")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_POD_FIELD = re.compile(
    r"metadata\.(name|namespace|uid|(labels|annotations)\['(?P<key>[^'\s]{1,317})'\])"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIP|hostIPs|podIP|podIPs)"
)
_IMAGE_COMPONENT = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"/?(([A-Za-z0-9][-A-Za-z0-9.]*)(:[0-9]{{1,5}})?/)?{_IMAGE_COMPONENT}(/{_IMAGE_COMPONENT})*(:[A-Za-z0-9_][-A-Za-z0-9_.]{{0,127}})?"
    r"(@[a-z0-9]+:[a-f0-9]{32,128})?"
)
_SCP_ADDRESS = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]*@[A-Za-z0-9][-A-Za-z0-9.]*:[^-:/ ][^: ]*")
_REVISION = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_./+#@]*")
_BUCKET = re.compile(r"[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]")
_HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?")


def max_name_length(framework: Framework | None, workers: int) -> int:
    """Return how long a workload's name may be, at most MAX_NAME_LENGTH.

    The names of all pods and services that are made from it stay valid.
    """
    if framework is None:
        return MAX_NAME_LENGTH
    # The suffixes of other pods, such as "-master-0", are shorter than what MAX_NAME_LENGTH leaves.
    return min(MAX_NAME_LENGTH, MAX_LABEL_LENGTH - len(f"-worker-{max(0, workers - 1)}"))


def check_name(value: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Check a DNS label that starts with a letter."""
    if not value:
        return "must be given"
    if len(value) > max_length:
        return f"must have at most {max_length} characters; it has {len(value)}"
    if not _NAME.fullmatch(value):
        return (
            "must be lower-case letters, digits and dashes, start with a letter and end with a "
            "letter or digit"
        )
    return ""


def check_text(value: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """Check any text that can be stored and sent."""
    if len(value) > max_length:
        return f"must have at most {max_length:,} characters"
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        return "must not contain a null character or half of a surrogate pair"
    return ""


def check_image(value: str) -> str:
    if not value:
        return "must be given"
    if len(value) > MAX_IMAGE_LENGTH:
        return f"must have at most {MAX_IMAGE_LENGTH} characters"
    if not _IMAGE.fullmatch(value):
        return (
            "must be an image name such as registry.example.com/team/train:1.2: lower case, "
            "without spaces"
        )
    return ""


def check_object_name(value: str) -> str:
    """Check the name of a ConfigMap, Secret, claim or the like."""
    if not value:
        return "must be given"
    if len(value) > 253 or not _OBJECT_NAME.fullmatch(value):
        return (
            "must be lower-case letters, digits, dashes and dots, and start and end with a letter "
            "or digit"
        )
    return ""


def check_namespace(value: str) -> str:
    """Check a namespace, which is a DNS label."""
    if len(value) > MAX_LABEL_LENGTH or "." in value:
        return f"must have at most {MAX_LABEL_LENGTH} characters and no dots"
    return check_object_name(value)


def check_variable_name(value: str) -> str:
    if not value:
        return "must be given"
    if len(value) > 253 or not _VARIABLE.fullmatch(value):
        return (
            "must start with a letter or underscore, and hold only letters, digits, underscores, "
            "dashes and dots"
        )
    return ""


def check_config_key(value: str) -> str:
    """Check a key of a ConfigMap or Secret."""
    if not value:
        return "must be given"
    if (
        len(value) > 253
        or not _CONFIG_KEY.fullmatch(value)
        or value == "."
        or value.startswith("..")
    ):
        return "must hold only letters, digits, dashes, underscores and dots"
    return ""


def check_pod_field(value: str) -> str:
    """Check the path of a pod field that a variable may have; that of a label has its key."""
    field = _POD_FIELD.fullmatch(value)
    if field is None:
        return "must be the path of a pod field such as metadata.name or status.podIP"
    return check_key(field["key"]) if field["key"] else ""


def check_key(value: str) -> str:
    """Check the key of a label, an annotation or a taint.

    It is a name of up to 63 characters, after an optional domain and a slash.
    """
    if not value:
        return "must be given"
    prefix, slash, last = value.rpartition("/")
    if slash and (len(prefix) > 253 or not _OBJECT_NAME.fullmatch(prefix)):
        return "must have a domain in lower case before the slash, as in example.com/team"
    if len(last) > MAX_LABEL_LENGTH or not _QUALIFIED_NAME.fullmatch(last):
        return (
            f"must be at most {MAX_LABEL_LENGTH} letters, digits, dashes, underscores and dots, "
            "and start and end with a letter or digit"
        )
    return ""


def is_gpu_resource(resource: str) -> bool:
    """Tell whether an extended resource stands for GPUs or parts of them.

    As nvidia.com/mig-1g.10gb does: by its vendor, or by its name.
    """
    domain, _, last = resource.lower().rpartition("/")
    return (
        any(domain == vendor or domain.endswith(f".{vendor}") for vendor in _GPU_VENDORS)
        or "gpu" in last
        or "mig-" in last
    )


def check_settable_key(value: str) -> str:
    """Check the key of a label or annotation that a user may set.

    The keys by which Muster and the engines work are refused.
    """
    domain = value.partition("/")[0]
    if (
        value in _RESERVED_KEYS
        or value.startswith(_RESERVED_PREFIXES)
        or domain.endswith(".muster.dev")
    ):
        return "is set by Muster or the cluster and cannot be chosen"
    return check_key(value)


def check_selector_key(value: str) -> str:
    """Check the key of a label by which nodes are selected."""
    if field := _SELECTED_BY_FIELD.get(value):
        return f"has a field of its own: {field}"
    return check_key(value)


def check_label_value(value: str) -> str:
    if value and (len(value) > MAX_LABEL_LENGTH or not _QUALIFIED_NAME.fullmatch(value)):
        return (
            f"must be at most {MAX_LABEL_LENGTH} letters, digits, dashes, underscores and dots, "
            "and start and end with a letter or digit"
        )
    return ""


def check_path(value: str) -> str:
    """Check an absolute path."""
    if not value:
        return "must be given"
    if not value.startswith("/"):
        return "must start with /"
    if (
        len(value) > MAX_PATH_LENGTH
        or check_text(value)
        or any(ord(character) < 32 for character in value)
    ):
        return f"must have at most {MAX_PATH_LENGTH} printable characters"
    return "must not have .. among its parts" if ".." in value.split("/") else ""


def check_mount_path(value: str) -> str:
    """Check a path inside a container where a volume can be mounted."""
    if problem := check_path(value):
        return problem
    if normalize_path(value) == "/":
        return "must not be the root directory"
    return "must not contain a colon" if ":" in value else ""


def normalize_path(path: str) -> str:
    """Return an absolute path as a container runtime reads it: without empty parts and dots."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def check_sub_path(value: str) -> str:
    """Check a relative path below a volume's root."""
    return "must not start with /" if value.startswith("/") else check_path(f"/{value}")


def check_repository(value: str) -> str:
    """Check the address of a Git repository.

    User and password are refused in it: everybody who sees the workload would see them.
    """
    if not value:
        return "must be given"
    if (
        len(value) > MAX_PATH_LENGTH
        or not value.isprintable()
        or not value.isascii()
        or " " in value
    ):
        return f"must have at most {MAX_PATH_LENGTH} printable characters and no spaces"
    if _SCP_ADDRESS.fullmatch(value):
        return ""
    url = _split_url(value)
    if (
        url is None
        or url.scheme not in ("https", "http", "ssh", "git", "file")
        or not (url.hostname or url.scheme == "file")
    ):
        return "must be a URL such as https://github.com/team/code.git, or user@host:path for SSH"
    # Git would hand such a host to ssh as an option, for example -oProxyCommand, which runs a
    # command (CVE-2017-1000117).
    if (url.hostname or "").startswith("-"):
        return "must have the name or address of a server, which does not begin with a dash"
    if url.password or (url.username and url.scheme != "ssh"):
        return "must not hold a user or a password: put them into a Secret and name that"
    if url.query or url.fragment:
        return (
            "must not hold a query or a fragment: everybody who sees the workload would see a "
            "token in it"
        )
    return ""


def check_url(value: str) -> str:
    """Check the http address of a service."""
    parts = _split_url(value)
    if (
        len(value) > MAX_PATH_LENGTH
        or parts is None
        or parts.scheme not in ("https", "http")
        or not parts.hostname
        or not value.isascii()
    ):
        return "must be a URL such as https://s3.example.com"
    if (
        not value.isprintable()
        or " " in value
        or parts.username
        or parts.password
        or parts.query
        or parts.fragment
    ):
        return "must be a plain URL, without user, password, query or fragment"
    return ""


def check_revision(value: str) -> str:
    """Check a branch, a tag or a commit, as Git spells them."""
    if (
        len(value) > 250
        or not _REVISION.fullmatch(value)
        or ".." in value
        or value.endswith((".lock", "/", "."))
    ):
        return "must be the name of a branch, a tag or a commit"
    return ""


def check_bucket(value: str) -> str:
    if not value:
        return "must be given"
    return (
        ""
        if _BUCKET.fullmatch(value)
        else "must be 3 to 63 lower-case letters, digits, dashes and dots"
    )


def _split_url(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        # These properties parse only when they are read, and raise ValueError then.
        _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts


def check_host(value: str) -> str:
    if not value:
        return "must be given"
    return (
        ""
        if len(value) <= 253 and _HOST.fullmatch(value)
        else "must be the name or address of a server"
    )


def check_quantity(value: str, *, minimum: str, maximum: str, step: Decimal | None = None) -> str:
    """Check a Kubernetes quantity from `minimum` to `maximum`.

    Both are in the notation that is shown to the user; `step` is the finest difference.
    """
    try:
        number = quantities.parse_quantity(value)
    except ValueError:
        hint = ", without the B" if value[-1:] in ("B", "b") else ""
        return f"must be a number with an optional unit, such as 500m, 2, 100M or 1Gi{hint}"
    if not quantities.parse_quantity(minimum) <= number <= quantities.parse_quantity(maximum):
        return f"must be from {minimum} to {maximum}"
    if step is not None and number % step:
        return f"must be a multiple of {step}" if step != 1 else _describe_fraction(value, number)
    return ""


def _describe_fraction(value: str, number: Decimal) -> str:
    """Describe that a quantity is no whole number, and how to write one that is a little more."""
    smaller = _SMALLER_UNITS.get(value.lstrip("+.0123456789"))
    if smaller is None:
        return "must be a whole number"
    amount = (number / quantities.parse_quantity(f"1{smaller}")).to_integral_value(ROUND_CEILING)
    return (
        f"must be a whole number, and {value} is {quantities.format_number(number)}: write it in a "
        f"smaller unit, such as {amount}{smaller}"
    )


def check_count(value: int, minimum: int, maximum: int) -> str:
    return (
        ""
        if minimum <= value <= maximum
        else f"must be a whole number from {minimum:,} to {maximum:,}"
    )
