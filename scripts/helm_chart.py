"""Writes the chart in deploy/helm from deploy/kustomize/overlays/example, as kubectl renders it.

python scripts/helm_chart.py

What a value sets is put in its place here, and nowhere else: a change of the manifests is a change
of the chart. Needs kubectl.
"""

import copy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

BASE = Path(__file__).resolve().parent.parent
OVERLAY = BASE / "deploy" / "kustomize" / "overlays" / "example"
CHART = BASE / "deploy" / "helm"

Object = dict[str, Any]

NAMESPACE = "{{ .Release.Namespace }}"
SETTINGS_NAME = "muster-settings"
PREPARE_NAME = "muster-prepare-{{ .Release.Revision }}"
IMAGE = (
    '{{ required "image.repository is empty: build your image, push it and say where it is." '
    ".Values.image.repository }}:"
    '{{ required "image.tag is empty: say which tag of your image is to run." .Values.image.tag }}'
)
HOST = (
    '{{ required "host is empty: say the name under which people reach the console." '
    ".Values.host }}"
)
CERTIFICATE = (
    '{{ required "ingress.tlsSecret is empty: name the Secret with the certificate of the host." '
    ".Values.ingress.tlsSecret }}"
)
SERVICE_HOST = "muster.{{ .Release.Namespace }}.svc"
"""The name by which a Prometheus in the cluster asks for figures."""
SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "MUSTER_ADMIN_PASSWORD",
    "MUSTER_DATABASE_URL",
    "MUSTER_ENCRYPTION_KEYS",
    "MUSTER_METRICS_TOKEN",
    "MUSTER_OIDC_CLIENT_SECRET",
    "MUSTER_REDIS_URL",
    "MUSTER_SECRET_KEY",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)
"""Settings that stand in the Secret: others can be read by whoever may read ConfigMaps."""
LOG_STORE = "MUSTER_LOG_STORAGE"
CHECKSUM = "{{ print .Values.host .Values.logs.store (toYaml .Values.settings) | sha256sum }}"
_LINE = "@line "
"""Begins a key or an item that stands for a line of the template instead of for YAML."""
_WITH_CLAIM, _WITH_ACCESS, _WITH_CLASSES, _END = (
    "{{- if not .Values.logs.store }}",
    "{{- if .Values.clusterAccess }}",
    # An upgrade with --reuse-values from a chart without this value has no such key: what is there
    # stays, for without them the pods that name these classes are refused.
    '{{- if and .Values.clusterAccess (or (not (hasKey .Values "priorityClasses")) '
    ".Values.priorityClasses) }}",
    "{{- end }}",
)
_WITH_CA = "{{- if .Values.redisCa }}"
_LOG_VOLUME = "logs"
# As the component `redis-ca` has them.
_CA_VOLUME: Object = {"name": "redis-ca", "configMap": {"name": "{{ .Values.redisCa }}"}}
_CA_MOUNT: Object = {"name": "redis-ca", "mountPath": "/etc/muster/redis-ca", "readOnly": True}
# Of a number in a file of values Helm knows no digits: 20260101 would be the tag 2.0260101e+07.
_REFUSE_NUMBER = """\
{{- if kindIs "float64" .Values.image.tag }}
{{- fail "image.tag is a number: write it in quotes." }}
{{- end }}
"""

HEAD = "# Made by scripts/helm_chart.py from deploy/kustomize: change it there.\n"

VALUES = """\
# The values of the chart, made by scripts/helm_chart.py. docs/production.md says how to install it.

# Where your image is: there is no published one.
image:
  # Such as {repository}; there is no default.
  repository: ""
  # A text: in quotes where it has digits only.
  tag: "{tag}"

# Secrets of the namespace that open your registry, where it is private: [{{name: registry-login}}].
imagePullSecrets: []

# The name under which people reach the console, such as {host}; there is no default.
host: ""

ingress:
  className: {ingress_class}
  # The Secret with the certificate of the host, such as {tls_secret}; there is no default.
  tlsSecret: ""
  # The namespace of the proxy: the network policy lets nobody else in.
  namespace: {proxy_namespace}
  annotations:
{annotations}

# The Secret with MUSTER_SECRET_KEY, MUSTER_ENCRYPTION_KEYS, MUSTER_DATABASE_URL and
# MUSTER_REDIS_URL. You make it: no value of a chart is a secret.
secret: {secret}

# A ConfigMap with the certificate of the authority that signed that of Redis, as ca.pem, where it
# is one of your own; MUSTER_REDIS_URL then ends with ?ssl_ca_certs={ca_directory}/ca.pem.
redisCa: ""

logs:
  # An object store, as s3://bucket/prefix, in place of a volume.
  store: ""
  # Of the volume that all processes share (ReadWriteMany); "" is the cluster's default class.
  storageClass: ""
  size: {log_size}

# Whether workloads may run in this cluster too: the ClusterRole for it, and priority classes.
clusterAccess: true

# Whether these classes are made with it. Where the cluster has one of their names, Helm refuses
# them: with false, Muster makes those that are missing when it makes a project there.
priorityClasses: true

# Other settings, MUSTER_... as docs/settings.md has them. Those that other values set, and secrets,
# are refused here.
settings: {{}}

# Beat is one, always. With one pod of a kind, a drain of its node has to be forced.
replicas:
{replicas}

resources:
{resources}
"""

CHART_FILE = """\
# Made by scripts/helm_chart.py.
apiVersion: v2
name: muster
description: A web console for distributed training on Kubernetes
type: application
version: {version}
appVersion: "{version}"
"""

NOTES = """\
Muster comes up at https://{{ .Values.host }} as soon as its database is prepared.

The first administrator's password is in the log of the Job, unless the Secret has
MUSTER_ADMIN_PASSWORD. The Job is removed {minutes} minutes after its end, and its log with it:

  kubectl -n {{ .Release.Namespace }} wait --for=condition=complete --timeout=300s \\
    job/muster-prepare-{{ .Release.Revision }}
  kubectl -n {{ .Release.Namespace }} logs job/muster-prepare-{{ .Release.Revision }}

Who comes later gives the administrator another password:

  kubectl -n {{ .Release.Namespace }} exec -it deployment/muster-web -- \\
    python manage.py changepassword admin
"""


def render_overlay() -> list[Object]:
    """Return the objects of the overlay, as kubectl renders them."""
    command = ["kubectl", "kustomize", str(OVERLAY)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return list(yaml.safe_load_all(process.stdout))


def build_files(objects: list[Object]) -> dict[str, str]:
    """Return the files of the chart by their paths below deploy/helm."""
    rendered = [copy.deepcopy(each) for each in objects if each["kind"] != "Namespace"]
    values = _build_values(rendered)
    texts: dict[str, list[str]] = {}
    for each in rendered:
        _put_values(each)
        texts.setdefault(_choose_file(each), []).append(_write_template(each))
    files = {name: HEAD + "---\n".join(parts) for name, parts in texts.items()}
    version = _read_image(objects)[1]
    [job] = [each for each in rendered if each["kind"] == "Job"]
    minutes = str(job["spec"]["ttlSecondsAfterFinished"] // 60)
    return files | {
        "Chart.yaml": CHART_FILE.format(version=version),
        "values.yaml": values,
        "templates/NOTES.txt": NOTES.replace("{minutes}", minutes),
    }


def _choose_file(obj: Object) -> str:
    kind = obj["kind"].lower()
    component = obj["metadata"].get("labels", {}).get("app.kubernetes.io/component")
    is_alone = obj["kind"] == "Deployment"
    return f"templates/{kind}-{component}.yaml" if is_alone else f"templates/{kind}.yaml"


def _list_pod_makers(objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] in ("Deployment", "Job")]


def _list_containers(pod_spec: Object) -> list[Object]:
    return [*pod_spec["containers"], *pod_spec.get("initContainers", [])]


def _get_component(obj: Object) -> str:
    return str(obj["metadata"]["labels"]["app.kubernetes.io/component"])


def _find_object(objects: list[Object], kind: str) -> Object:
    """Return the only object of a kind."""
    [manifest] = [each for each in objects if each["kind"] == kind]
    return manifest


def _read_image(objects: list[Object]) -> tuple[str, str]:
    """Return the repository and the tag of the image, which all containers share."""
    [image] = {
        container["image"]
        for maker in _list_pod_makers(objects)
        for container in _list_containers(maker["spec"]["template"]["spec"])
    }
    repository, _, tag = image.rpartition(":")
    return repository, tag


def _build_values(objects: list[Object]) -> str:
    """Return values.yaml: the values with which the chart is the overlay."""
    repository, tag = _read_image(objects)
    ingress, makers = _find_object(objects, "Ingress"), _list_pod_makers(objects)
    web = next(
        each
        for each in objects
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "muster-web"
    )
    [peer] = web["spec"]["ingress"][0]["from"]
    [proxy_namespace] = peer["namespaceSelector"]["matchLabels"].values()
    claim = _find_object(objects, "PersistentVolumeClaim")
    return VALUES.format(
        repository=repository,
        tag=tag,
        host=ingress["spec"]["rules"][0]["host"],
        ingress_class=ingress["spec"]["ingressClassName"],
        tls_secret=ingress["spec"]["tls"][0]["secretName"],
        proxy_namespace=proxy_namespace,
        annotations=_indent(ingress["metadata"]["annotations"], 4),
        secret=_read_secret_name(makers),
        ca_directory=_CA_MOUNT["mountPath"],
        log_size=claim["spec"]["resources"]["requests"]["storage"],
        replicas=_indent(
            {
                _get_component(each): each["spec"]["replicas"]
                for each in makers
                if _has_choice_of_replicas(each)
            },
            2,
        ),
        resources=_indent(
            {
                _get_component(each): each["spec"]["template"]["spec"]["containers"][0]["resources"]
                for each in makers
            },
            2,
        ),
    )


def _read_secret_name(makers: list[Object]) -> str:
    [name] = {
        source["secretRef"]["name"]
        for maker in makers
        for container in _list_containers(maker["spec"]["template"]["spec"])
        for source in container["envFrom"]
        if "secretRef" in source
    }
    return str(name)


def _has_choice_of_replicas(maker: Object) -> bool:
    """Tell whether there may be several; what an upgrade may not double is one."""
    strategy = maker["spec"].get("strategy", {})
    return bool(maker["kind"] == "Deployment" and strategy.get("type") != "Recreate")


def _indent(value: Object, spaces: int) -> str:
    lines = yaml.safe_dump(value, sort_keys=True).rstrip().splitlines()
    return "\n".join(" " * spaces + line for line in lines)


def _put_values(obj: Object) -> None:
    """Put templates in place of what values set."""
    if "namespace" in obj["metadata"]:
        obj["metadata"]["namespace"] = NAMESPACE
    match obj["kind"]:
        case "ClusterRoleBinding":
            obj["subjects"][0]["namespace"] = NAMESPACE
        case "ConfigMap":
            _put_settings(obj)
        case "PersistentVolumeClaim":
            _put_claim(obj)
        case "Ingress":
            _put_host(obj)
        case "NetworkPolicy" if obj["metadata"]["name"] == "muster-web":
            labels = obj["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
            labels.update(dict.fromkeys(labels, "{{ .Values.ingress.namespace }}"))
        case "Deployment" | "Job":
            _put_pods(obj)


def _put_settings(config: Object) -> None:
    config["metadata"]["name"] = SETTINGS_NAME
    config["data"]["MUSTER_ALLOWED_HOSTS"] = f"{HOST},{SERVICE_HOST}"
    fixed = " ".join(f'"{each}"' for each in sorted({*config["data"], LOG_STORE}))
    secret = " ".join(f'"{each}"' for each in SECRETS)
    config["data"] |= _lines(
        "{{- with .Values.logs.store }}",
        f"  {LOG_STORE}: {{{{ . | quote }}}}",
        _END,
        "{{- range $name, $value := .Values.settings }}",
        f"{{{{- if has $name (list {fixed}) }}}}",
        '{{- fail (printf "settings.%s is set by the chart: set host or logs.store, or leave it '
        'out." $name) }}',
        _END,
        f"{{{{- if has $name (list {secret}) }}}}",
        '{{- fail (printf "settings.%s is a secret: put it into the Secret that the value secret '
        'names." $name) }}',
        _END,
        '{{- if not (kindIs "invalid" $value) }}',
        # As JSON a large number has all its digits, and no exponent.
        '  {{ $name }}: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}',
        _END,
        _END,
    )


def _put_claim(claim: Object) -> None:
    # Logs outlive an uninstallation: who wants them gone deletes the claim.
    claim["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    claim["spec"]["resources"]["requests"]["storage"] = "{{ .Values.logs.size }}"
    claim["spec"] |= _lines(
        "{{- with .Values.logs.storageClass }}", "  storageClassName: {{ . | quote }}", _END
    )


def _put_host(ingress: Object) -> None:
    ingress["metadata"]["annotations"] = _lines(
        "    {{- toYaml .Values.ingress.annotations | nindent 4 }}"
    )
    spec = ingress["spec"]
    spec["ingressClassName"] = "{{ .Values.ingress.className }}"
    spec["rules"][0]["host"] = spec["tls"][0]["hosts"][0] = HOST
    spec["tls"][0]["secretName"] = CERTIFICATE


def _put_pods(maker: Object) -> None:
    component, template = _get_component(maker), maker["spec"]["template"]
    if maker["kind"] == "Job":
        # What a Job runs cannot be changed: each release of the chart has one of its own.
        maker["metadata"]["name"] = PREPARE_NAME
    elif _has_choice_of_replicas(maker):
        maker["spec"]["replicas"] = f"{{{{ .Values.replicas.{component} }}}}"
    # Pods read their settings when they start: other settings are other pods.
    template["metadata"]["annotations"] = {"checksum/settings": CHECKSUM}
    for container in _list_containers(template["spec"]):
        container["image"] = IMAGE
        for source in container["envFrom"]:
            if "configMapRef" in source:
                source["configMapRef"]["name"] = SETTINGS_NAME
            else:
                source["secretRef"]["name"] = "{{ .Values.secret }}"
        container["volumeMounts"] = [
            *_put_condition(container["volumeMounts"]),
            *(_LINE + _WITH_CA, _CA_MOUNT.copy(), _LINE + _END),
        ]
    template["spec"]["volumes"] = [
        *_put_condition(template["spec"]["volumes"]),
        *(_LINE + _WITH_CA, _CA_VOLUME, _LINE + _END),
    ]
    template["spec"] |= _lines(
        "{{- with .Values.imagePullSecrets }}",
        "      imagePullSecrets:",
        "        {{- toYaml . | nindent 8 }}",
        _END,
    )
    template["spec"]["containers"][0]["resources"] = _lines(
        f"          {{{{- toYaml .Values.resources.{component} | nindent 10 }}}}"
    )


def _put_condition(items: list[Object]) -> Iterator[Object | str]:
    """Yield volumes or mounts; that of the logs is there unless an object store has them."""
    for each in items:
        if each["name"] == _LOG_VOLUME:
            yield from (_LINE + _WITH_CLAIM, each, _LINE + _END)
        else:
            yield each


def _lines(*lines: str) -> Object:
    """Return keys that stand for lines of the template, in their order."""
    return {f"{_LINE}{number:02} {line}": None for number, line in enumerate(lines)}


def _write_template(obj: Object) -> str:
    """Return an object as YAML with the lines of the template in it."""
    text = yaml.safe_dump(obj, sort_keys=True, width=1000)
    # A long key, as a line of the template may be, has its value on a line of its own.
    lines = (line for line in text.splitlines() if line.strip() != ": null")
    written = "".join(f"{_unpack_line(line)}\n" for line in lines)
    match obj["kind"]:
        case "ClusterRole" | "ClusterRoleBinding":
            return f"{_WITH_ACCESS}\n{written}{_END}\n"
        case "PriorityClass":
            return f"{_WITH_CLASSES}\n{written}{_END}\n"
        case "Job":
            return f"{_REFUSE_NUMBER}{written}"
        case "PersistentVolumeClaim":
            return f"{_WITH_CLAIM}\n{written}{_END}\n"
    return written


def _unpack_line(line: str) -> str:
    """Return the line of the template that a line of YAML stands for, or a value without quotes."""
    _, marker, rest = line.partition(_LINE)
    if marker:
        rest = rest.rstrip().removesuffix(": null").rstrip("'")
        number, _, numbered = rest.partition(" ")
        return (numbered if number.isdigit() else rest).replace("''", "'")
    # A number of replicas is no text.
    if line.strip().startswith("replicas: '{{"):
        return line.replace("'", "")
    return line


def write_chart() -> None:
    """Write the chart, without files that it no longer has."""
    files = build_files(render_overlay())
    for path in CHART.rglob("*"):
        if path.is_file() and str(path.relative_to(CHART)) not in files:
            path.unlink()
    for name, text in files.items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    write_chart()
