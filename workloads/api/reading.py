"""A body of the REST API as a Spec: the way back of `manifests.rest`. Every field is understood, or
refused by name.
"""

import secrets
import string
from dataclasses import dataclass, replace

from console.errors import Invalid, Noncompliant
from projects.models import Project
from workloads.api.fields import Fields, Findings
from workloads.api.reading_pods import setup
from workloads.specs import (
    UNCHANGED,
    Architecture,
    CleanPodPolicy,
    Configuration,
    Elastic,
    Framework,
    LauncherCreation,
    Lifecycle,
    MasterChanges,
    Mpi,
    Preemptibility,
    Priority,
    RestartPolicy,
    Setup,
    Spec,
)

_RANDOM = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Submission:
    """A body that was understood. `spec` lacks what only its project knows; its values are not
    judged yet.
    """

    spec: Spec
    project_id: str
    cluster_id: str
    name_is_prefix: bool
    findings: Findings

    def for_project(self, project: Project) -> Spec:
        """The Spec that is asked for, in this project. A name that is a prefix gets its random
        end.
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
    def said(self) -> frozenset[str]:
        """The fields of the Spec that the body gives a value."""
        return self.findings.said

    def in_words_of_the_body(self, invalid: Invalid) -> Invalid:
        """The same problems, with the body's names of the fields."""
        if isinstance(invalid, Noncompliant):
            return Noncompliant(
                [
                    (self.findings.place_of(field), text, rule)
                    for field, text, rule in invalid.issues
                ]
            )
        return Invalid([(self.findings.place_of(field), text) for field, text in invalid.problems])


def read(body: object, architecture: Architecture) -> Submission:
    """The submission that a body asks for. Raises Invalid with everything that cannot be
    understood.
    """
    findings = Findings()
    top = Fields(body, "", "", findings)
    for field in ("project", "namespace", "queue"):
        findings.came_from(field, "projectId")
    top.unsupported(templateId=())
    name, project_id, cluster_id = (
        top.text("name", "name"),
        _id(top, "projectId"),
        top.text("clusterId"),
    )
    name_is_prefix = bool(top.flag("useGivenNameAsPrefix"))
    asked = top.inner("spec", "setup")
    read_spec = _distributed if architecture is Architecture.DISTRIBUTED else _standard
    spec = read_spec(name, top, asked)
    for field, value in (("projectId", project_id), ("clusterId", cluster_id)):
        if not value and not any(place == field for place, _ in findings.problems):
            top.refuse(field, "must be given")
    findings.finish()
    if findings.problems:
        raise Invalid(findings.problems)
    return Submission(spec, project_id, cluster_id, name_is_prefix, findings)


def _id(top: Fields, name: str) -> str:
    """Ids of projects are text in this API; a number is taken too, as other parts of it show them
    so.
    """
    return str(top.whole(name)) if top.is_number(name) else top.text(name)


def _standard(name: str, top: Fields, asked: Fields) -> Spec:
    runs, parallelism = (
        asked.whole("completions", "/runs"),
        asked.whole("parallelism", "/parallelism"),
    )
    return Spec(
        name=name,
        project="",
        namespace="",
        queue="",
        setup=setup(asked),
        runs=1 if runs is None else runs,
        parallelism=1 if parallelism is None else parallelism,
        lifecycle=_lifecycle(asked),
    )


def _distributed(name: str, top: Fields, asked: Fields) -> Spec:
    framework = asked.choice("distributedFramework", Framework, "/framework")
    given = asked.whole("numWorkers", "/workers")
    workers = 1 if given is None else given
    servers = asked.whole("parameterServers", "/parameter_servers")
    workers_setup, lifecycle = setup(asked), _lifecycle(asked)
    configuration, master = _master(top, framework, workers_setup, lifecycle)
    return Spec(
        name=name,
        project="",
        namespace="",
        queue="",
        architecture=Architecture.DISTRIBUTED,
        framework=framework,
        workers=workers,
        elastic=_elastic(asked, workers),
        parameter_servers=0 if servers is None else servers,
        mpi=_mpi(asked),
        setup=workers_setup,
        configuration=configuration,
        master=master,
        lifecycle=lifecycle,
    )


def _elastic(asked: Fields, workers: int) -> Elastic | None:
    least, most = (
        asked.whole("minReplicas", "/elastic.min_workers"),
        asked.whole("maxReplicas", "/elastic.max_workers"),
    )
    restarts = asked.whole("maxRestarts", "/elastic.max_restarts")
    asked.stands_for("maxReplicas" if least is None else "minReplicas", "/elastic")
    if least is None and most is None:
        if restarts is not None:
            asked.refuse(
                "maxRestarts", "can be given only together with minReplicas or maxReplicas"
            )
        return None
    return Elastic(workers if least is None else least, workers if most is None else most, restarts)


def _mpi(asked: Fields) -> Mpi:
    """What is not said of it is as the API has it by default, whatever the framework."""
    usual = Mpi()
    given = [
        name
        for name in ("slotsPerWorker", "sshAuthMountPath", "mpiLauncherCreationPolicy")
        if asked.has(name)
    ]
    if given:
        asked.stands_for(given[0], "/mpi")
    slots = asked.whole("slotsPerWorker", "/mpi.slots")
    launcher = asked.choice("mpiLauncherCreationPolicy", LauncherCreation, "/mpi.launcher")
    path = asked.text("sshAuthMountPath", "/mpi.ssh_path")
    return Mpi(
        usual.slots if slots is None else slots, launcher or usual.launcher, path or usual.ssh_path
    )


def _lifecycle(asked: Fields) -> Lifecycle:
    backoff = asked.whole("backoffLimit", "/lifecycle.backoff_limit")
    chosen = Lifecycle(
        priority=asked.choice("priorityClass", Priority, "/lifecycle.priority"),
        preemptibility=asked.choice("preemptibility", Preemptibility, "/lifecycle.preemptibility"),
        restart_policy=asked.choice("restartPolicy", RestartPolicy, "/lifecycle.restart_policy"),
        clean_pod_policy=asked.choice(
            "cleanPodPolicy", CleanPodPolicy, "/lifecycle.clean_pod_policy"
        ),
        grace_seconds=asked.whole("terminationGracePeriodSeconds", "/lifecycle.grace_seconds"),
        auto_delete_seconds=asked.whole(
            "autoDeletionTimeAfterCompletionSeconds", "/lifecycle.auto_delete_seconds"
        ),
    )
    return chosen if backoff is None else replace(chosen, backoff_limit=backoff)


def _master(
    top: Fields, framework: Framework | None, workers: Setup, lifecycle: Lifecycle
) -> tuple[Configuration, MasterChanges]:
    """Without a word of it the master is as the workers are, where the framework has one.

    A masterSpec stands for itself: what it does not say is not the workers'.
    """
    same, none = top.flag("masterSpecSameAsWorker", "master"), top.flag("noMaster", "configuration")
    given = top.has("masterSpec")
    asked = top.inner("masterSpec", "master")
    if none and (same or given):
        top.refuse("noMaster", "cannot be true together with masterSpec or masterSpecSameAsWorker")
    if none:
        asked.ignore_rest()
        return Configuration.WORKERS_ONLY, UNCHANGED
    if not given:
        if same is False:
            top.refuse("masterSpec", "must be given where masterSpecSameAsWorker is false")
        return framework.configurations[
            0
        ] if framework else Configuration.WORKERS_AND_MASTER, UNCHANGED
    if same:
        top.refuse("masterSpec", "can be given only where masterSpecSameAsWorker is not true")
    top.stands_for("masterSpec", "configuration")
    _same_lifecycle(asked, lifecycle)
    return Configuration.WORKERS_AND_MASTER, MasterChanges.between(workers, setup(asked))


def _same_lifecycle(asked: Fields, lifecycle: Lifecycle) -> None:
    """Master and workers share these: the API lets them be said twice, and they may only be said
    alike.
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
        said = () if value is None else (value if isinstance(value, int) else str(value),)
        asked.unsupported("must be that of spec: this version has one for all pods", **{name: said})
