"""Parsing of a submission's body into a Spec: the reverse of `manifests.rest_body`.

Every field is understood, or refused by name.
"""

import secrets
import string
from dataclasses import dataclass, replace

from console.errors import Invalid, Noncompliant
from projects.models import Project
from workloads.api.body_fields import BodyFields, BodyReport
from workloads.api.setup_bodies import parse_setup
from workloads.specs import (
    UNCHANGED,
    Architecture,
    CleanPodPolicy,
    Configuration,
    ElasticSettings,
    Framework,
    LauncherCreation,
    Lifecycle,
    MasterChanges,
    MpiSettings,
    Preemptibility,
    Priority,
    RestartPolicy,
    Setup,
    Spec,
)

_RANDOM = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Submission:
    """A parsed body. `spec` lacks what only its project knows, and is not validated yet."""

    spec: Spec
    project_id: str
    cluster_id: str
    name_is_prefix: bool
    report: BodyReport

    def build_spec(self, project: Project) -> Spec:
        """Return the requested Spec in this project.

        A name that is a prefix gets its random end.
        """
        end = (
            f"-{''.join(secrets.choice(_RANDOM) for _ in range(6))}" if self.name_is_prefix else ""
        )
        return replace(
            self.spec,
            name=f"{self.spec.name}{end}",
            project=project.name,
            namespace=project.namespace,
            queue=project.queue,
        )

    @property
    def given_fields(self) -> frozenset[str]:
        """Return the fields of the Spec that have a value in the body."""
        return self.report.given_fields

    def translate_problems(self, invalid: Invalid) -> Invalid:
        """Return the same problems with the body's names of the fields."""
        if isinstance(invalid, Noncompliant):
            return Noncompliant(
                [
                    (self.report.get_body_path(field), text, rule)
                    for field, text, rule in invalid.issues
                ]
            )
        return Invalid(
            [(self.report.get_body_path(field), text) for field, text in invalid.problems]
        )


def parse_submission(body: object, architecture: Architecture) -> Submission:
    """Return the submission that a body requests.

    Raises Invalid with everything that cannot be understood.
    """
    report = BodyReport()
    top = BodyFields(body, "", "", report)
    for field in ("project", "namespace", "queue"):
        report.record_origin(field, "projectId")
    top.refuse_unsupported(templateId=())
    name, project_id, cluster_id = (
        top.read_text("name", "name"),
        _read_id(top, "projectId"),
        top.read_text("clusterId"),
    )
    name_is_prefix = bool(top.read_flag("useGivenNameAsPrefix"))
    spec_fields = top.read_object("spec", "setup")
    parse_spec = _parse_distributed if architecture is Architecture.DISTRIBUTED else _parse_standard
    spec = parse_spec(name, top, spec_fields)
    for field, value in (("projectId", project_id), ("clusterId", cluster_id)):
        if not value and not any(path == field for path, _ in report.problems):
            top.refuse(field, "must be given")
    report.refuse_unread_fields()
    if report.problems:
        raise Invalid(report.problems)
    return Submission(spec, project_id, cluster_id, name_is_prefix, report)


def _read_id(top: BodyFields, name: str) -> str:
    """Return an id as text.

    Ids of projects are text in this API; a number is accepted too, since other parts of it show
    them so.
    """
    return str(top.read_integer(name)) if top.is_number(name) else top.read_text(name)


def _parse_standard(name: str, top: BodyFields, body: BodyFields) -> Spec:
    runs, parallelism = (
        body.read_integer("completions", "/runs"),
        body.read_integer("parallelism", "/parallelism"),
    )
    return Spec(
        name=name,
        project="",
        namespace="",
        queue="",
        setup=parse_setup(body),
        runs=1 if runs is None else runs,
        parallelism=1 if parallelism is None else parallelism,
        lifecycle=_parse_lifecycle(body),
    )


def _parse_distributed(name: str, top: BodyFields, body: BodyFields) -> Spec:
    framework = body.read_choice("distributedFramework", Framework, "/framework")
    given_workers = body.read_integer("numWorkers", "/workers")
    workers = 1 if given_workers is None else given_workers
    servers = body.read_integer("parameterServers", "/parameter_servers")
    workers_setup, lifecycle = parse_setup(body), _parse_lifecycle(body)
    configuration, master = _parse_master(top, framework, workers_setup, lifecycle)
    return Spec(
        name=name,
        project="",
        namespace="",
        queue="",
        architecture=Architecture.DISTRIBUTED,
        framework=framework,
        workers=workers,
        elastic=_parse_elastic(body, workers),
        parameter_servers=0 if servers is None else servers,
        mpi=_parse_mpi(body),
        setup=workers_setup,
        configuration=configuration,
        master=master,
        lifecycle=lifecycle,
    )


def _parse_elastic(body: BodyFields, workers: int) -> ElasticSettings | None:
    minimum, maximum = (
        body.read_integer("minReplicas", "/elastic.min_workers"),
        body.read_integer("maxReplicas", "/elastic.max_workers"),
    )
    restarts = body.read_integer("maxRestarts", "/elastic.max_restarts")
    body.record_origin("maxReplicas" if minimum is None else "minReplicas", "/elastic")
    if minimum is None and maximum is None:
        if restarts is not None:
            body.refuse("maxRestarts", "can be given only together with minReplicas or maxReplicas")
        return None
    return ElasticSettings(
        workers if minimum is None else minimum, workers if maximum is None else maximum, restarts
    )


def _parse_mpi(body: BodyFields) -> MpiSettings:
    """Return the MPI settings; what is not given has the API's default, whatever the framework."""
    defaults = MpiSettings()
    given_names = [
        name
        for name in ("slotsPerWorker", "sshAuthMountPath", "mpiLauncherCreationPolicy")
        if body.has(name)
    ]
    if given_names:
        body.record_origin(given_names[0], "/mpi")
    slots = body.read_integer("slotsPerWorker", "/mpi.slots")
    launcher = body.read_choice("mpiLauncherCreationPolicy", LauncherCreation, "/mpi.launcher")
    path = body.read_text("sshAuthMountPath", "/mpi.ssh_path")
    return MpiSettings(
        defaults.slots if slots is None else slots,
        launcher or defaults.launcher,
        path or defaults.ssh_path,
    )


def _parse_lifecycle(body: BodyFields) -> Lifecycle:
    backoff = body.read_integer("backoffLimit", "/lifecycle.backoff_limit")
    chosen = Lifecycle(
        priority=body.read_choice("priorityClass", Priority, "/lifecycle.priority"),
        preemptibility=body.read_choice(
            "preemptibility", Preemptibility, "/lifecycle.preemptibility"
        ),
        restart_policy=body.read_choice(
            "restartPolicy", RestartPolicy, "/lifecycle.restart_policy"
        ),
        clean_pod_policy=body.read_choice(
            "cleanPodPolicy", CleanPodPolicy, "/lifecycle.clean_pod_policy"
        ),
        grace_seconds=body.read_integer(
            "terminationGracePeriodSeconds", "/lifecycle.grace_seconds"
        ),
        auto_delete_seconds=body.read_integer(
            "autoDeletionTimeAfterCompletionSeconds", "/lifecycle.auto_delete_seconds"
        ),
    )
    return chosen if backoff is None else replace(chosen, backoff_limit=backoff)


def _parse_master(
    top: BodyFields, framework: Framework | None, workers: Setup, lifecycle: Lifecycle
) -> tuple[Configuration, MasterChanges]:
    """Return the configuration and the master's changes.

    Where nothing is given the master is as the workers are, if the framework has one. A masterSpec
    stands for itself: what it does not give is not taken from the workers.
    """
    is_same, has_no_master = (
        top.read_flag("masterSpecSameAsWorker", "master"),
        top.read_flag("noMaster", "configuration"),
    )
    is_given = top.has("masterSpec")
    master_spec = top.read_object("masterSpec", "master")
    if has_no_master and (is_same or is_given):
        top.refuse("noMaster", "cannot be true together with masterSpec or masterSpecSameAsWorker")
    if has_no_master:
        master_spec.ignore_rest()
        return Configuration.WORKERS_ONLY, UNCHANGED
    if not is_given:
        if is_same is False:
            top.refuse("masterSpec", "must be given where masterSpecSameAsWorker is false")
        return framework.configurations[
            0
        ] if framework else Configuration.WORKERS_AND_MASTER, UNCHANGED
    if is_same:
        top.refuse("masterSpec", "can be given only where masterSpecSameAsWorker is not true")
    top.record_origin("masterSpec", "configuration")
    _require_same_lifecycle(master_spec, lifecycle)
    return Configuration.WORKERS_AND_MASTER, MasterChanges.from_setups(
        workers, parse_setup(master_spec)
    )


def _require_same_lifecycle(body: BodyFields, lifecycle: Lifecycle) -> None:
    """Refuse lifecycle fields of the master that differ from the workers'.

    Master and workers share them here; the API lets them be given twice.
    """
    shared = {
        "backoffLimit": lifecycle.backoff_limit,
        "restartPolicy": lifecycle.restart_policy,
        "terminationGracePeriodSeconds": lifecycle.grace_seconds,
        "autoDeletionTimeAfterCompletionSeconds": lifecycle.auto_delete_seconds,
        "priorityClass": lifecycle.priority,
        "preemptibility": lifecycle.preemptibility,
    }
    for name, value in shared.items():
        accepted = () if value is None else (value if isinstance(value, int) else str(value),)
        body.refuse_unsupported(
            "must be that of spec: this version has one for all pods", **{name: accepted}
        )
