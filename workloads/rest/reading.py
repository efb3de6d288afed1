"""Parsing of a submission's body into a Spec: the reverse of `rest.writing`.

Every field is understood, or refused by name.
"""

import secrets
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from console.errors import Invalid, Noncompliant
from console.rest_bodies import Reading, read_body
from projects.models import Project
from workloads.rest.parts import LocatedBody, Refuse
from workloads.rest.places import BodyPlaces
from workloads.rest.structs import (
    BODIES,
    CODECS,
    POD_FIELDS,
    SHARED_FIELDS,
    DistributedBody,
    GpuRequestType,
    IdSource,
    SubmissionBody,
    list_spec_fields,
)
from workloads.rest.volumes import StorageBody
from workloads.specs import (
    UNCHANGED,
    Architecture,
    Configuration,
    DataDelivery,
    ElasticSettings,
    Framework,
    MasterChanges,
    Setup,
    Spec,
)
from workloads.specs.building import build_part, take_part
from workloads.specs.fields import Field, get_value
from workloads.specs.fields.types import Rows

_RANDOM = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Submission:
    """A parsed body. `spec` lacks what only its project knows, and is not validated yet."""

    spec: Spec
    project_id: str
    cluster_id: str
    name_is_prefix: bool
    places: BodyPlaces

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
        return self.places.given_fields

    def translate_problems(self, invalid: Invalid) -> Invalid:
        """Return the same problems with the body's names of the fields."""
        find = self.places.find_place
        if isinstance(invalid, Noncompliant):
            return Noncompliant([(find(field), text, rule) for field, text, rule in invalid.issues])
        return Invalid([(find(field), text) for field, text in invalid.problems])


def parse_submission(body: object, architecture: Architecture) -> Submission:
    """Return the submission that a body requests.

    Raises Invalid with everything that cannot be understood.
    """
    return _SubmissionReader(read_body(BODIES[architecture], body), architecture).read_submission()


@dataclass(frozen=True, slots=True)
class _SubmissionReader:
    """The reading of one body of known shape as a Spec."""

    reading: Reading[SubmissionBody]
    architecture: Architecture

    def read_submission(self) -> Submission:
        places, body = BodyPlaces(), self.reading.value
        for field in ("project", "namespace", "queue"):
            places.add_field(field, "projectId")
        places.add_field("name", "name")
        project_id, cluster_id = str(body.project_id), body.cluster_id
        spec = self._read_spec(body, places)
        problem_paths = {path for path, _ in self.reading.problems}
        for place, value in (("projectId", project_id), ("clusterId", cluster_id)):
            if not value and place not in problem_paths:
                self.reading.refuse(place, "must be given")
        self.reading.require_valid()
        return Submission(spec, project_id, cluster_id, bool(body.use_given_name_as_prefix), places)

    def _read_spec(self, body: Any, places: BodyPlaces) -> Spec:
        places.add_field("setup", "spec")
        values: dict[str, Any] = {
            "name": body.name,
            "project": "",
            "namespace": "",
            "queue": "",
            "architecture": self.architecture,
            # A spec whose image is missing is whole all the same: its problems say so.
            "setup.environment.image": "",
        }
        values |= self._read_fields(
            body.spec, "spec", list_spec_fields(self.architecture), "", places
        )
        elastic = take_part(values, "elastic")
        values["data_delivery"] = self._read_data_delivery(
            take_part(values, "data_delivery"), places
        )
        spec = build_part(Spec, values)
        if isinstance(body, DistributedBody):
            configuration, master = self._read_master(body, spec, places)
            spec = replace(
                spec,
                configuration=configuration,
                master=master,
            )
            self._check_total(spec, elastic, places)
            pods = spec.workers + int(spec.has_master)
            spec = replace(spec, elastic=self._read_elastic(elastic, pods, places))
            mpi_paths = [path for path in values if path.startswith("mpi.")]
            places.add_field("mpi", places.find_place([*mpi_paths, "mpi.slots"][0]))
        return spec

    def _read_fields(
        self, body: Any, place: str, fields: Iterable[Field], below: str, places: BodyPlaces
    ) -> dict[str, Any]:
        """Return the values of fields by path; what is not given is left out.

        `below` is the path in the Spec of the kind of pod where that is not the workers.
        """
        values: dict[str, Any] = {}
        for field in fields:
            field_place = f"{place}.{field.rest}"
            path = below + field.pod_path if below else field.path
            places.add_field(path, field_place, is_given=field_place in self.reading.given)
            value = _get_at(body, field.rest)
            if isinstance(field.type, Rows):
                value = self._read_rows(value, field_place, path, places)
            else:
                if isinstance(value, LocatedBody):
                    places.add_part(path, field_place, value)
                value = CODECS[field.path].read(value, self._build_refuse(field_place))
                _add_name_places(path, field_place, self.reading, places)
            if value is not None:
                values[field.pod_path if below else field.path] = value
        self._check_repeated(body, place)
        return values

    def _read_rows(self, bodies: Any, place: str, path: str, places: BodyPlaces) -> tuple[Any, ...]:
        listed = (
            bodies.list_bodies()
            if isinstance(bodies, StorageBody)
            else ((str(index), each) for index, each in enumerate(bodies))
        )
        parts = []
        for number, (below, body) in enumerate(listed):
            part_place = self.reading.get_body_path(f"{place}.{below}")
            places.add_part(f"{path}.{number}", part_place, body)
            parts.append(body.build_part(self._build_part_refuse(part_place)))
        return tuple(parts)

    def _check_repeated(self, body: Any, place: str) -> None:
        """Refuse what a body says twice, and differently, of GPUs and of ids."""
        compute, security = body.compute, body.security
        kind, compute_place = compute.gpu_request_type, f"{place}.compute"
        portion, memory = compute.gpuPortionRequest, compute.gpuMemoryRequest
        if compute.gpu_portion_limit not in (None, portion):
            self.reading.refuse(
                f"{compute_place}.gpuPortionLimit",
                "cannot be other than gpuPortionRequest with this version",
            )
        if compute.gpu_memory_limit not in ("", memory):
            self.reading.refuse(
                f"{compute_place}.gpuMemoryLimit",
                "cannot be other than gpuMemoryRequest with this version",
            )
        if kind is GpuRequestType.PORTION and portion is None:
            self.reading.refuse(
                f"{compute_place}.gpuPortionRequest",
                "must be given where gpuRequestType is portion",
            )
        if kind is GpuRequestType.MEMORY and not memory:
            self.reading.refuse(
                f"{compute_place}.gpuMemoryRequest", "must be given where gpuRequestType is memory"
            )
        if security.uid_gid_source is IdSource.IMAGE:
            for name in ("runAsUid", "runAsGid", "supplementalGroups"):
                if f"{place}.security.{name}" in self.reading.given:
                    self.reading.refuse(
                        f"{place}.security.{name}",
                        "can be given only where uidGidSource is custom",
                    )

    def _check_total(self, spec: Spec, elastic: Mapping[str, int], places: BodyPlaces) -> None:
        """Refuse what a total of GPUs cannot stand together with."""
        if spec.total_gpus is None:
            return
        place = places.find_place("total_gpus")
        if "workers" in places.given_fields:
            self.reading.refuse(
                place, "can be given only without numWorkers, which is worked out of it"
            )
        if len({"min_pods", "max_pods"} & elastic.keys()) == 1:
            self.reading.refuse(
                place, "can be given together with both of minReplicas and maxReplicas only"
            )

    def _read_elastic(
        self, values: Mapping[str, int], pods: int, places: BodyPlaces
    ) -> ElasticSettings | None:
        """Return the elastic settings of a workload of so many pods.

        Either bound makes a workload elastic.
        """
        least, most = values.get("min_pods"), values.get("max_pods")
        restarts = values.get("max_restarts")
        chosen = "elastic.max_pods" if least is None else "elastic.min_pods"
        places.add_field("elastic", places.find_place(chosen))
        if least is None and most is None:
            if restarts is not None:
                self.reading.refuse(
                    places.find_place("elastic.max_restarts"),
                    "can be given only together with minReplicas or maxReplicas",
                )
            return None
        return ElasticSettings(
            pods if least is None else least, pods if most is None else most, restarts
        )

    def _read_data_delivery(
        self, values: Mapping[str, Any], places: BodyPlaces
    ) -> DataDelivery | None:
        """Return the data workers; None where nothing is given of them."""
        places.add_field("data_delivery", "spec.dataDelivery")
        if values and "workers" not in values:
            self.reading.refuse("spec.dataDelivery.workers", "must be given: how many there are")
            return None
        return build_part(DataDelivery, {"units": 0} | dict(values)) if values else None

    def _read_master(
        self, body: DistributedBody, spec: Spec, places: BodyPlaces
    ) -> tuple[Configuration, MasterChanges]:
        """Return the configuration and the master's changes.

        Where nothing is given the master is as the workers are, if the framework has one. A
        masterSpec stands for itself: what it does not give is not taken from the workers.
        """
        is_same, master = body.master_spec_same_as_worker, body.master_spec
        places.add_field("configuration", "noMaster")
        places.add_field("master", "masterSpec")
        if body.no_master:
            if is_same or master is not None:
                self.reading.refuse(
                    "noMaster", "cannot be true together with masterSpec or masterSpecSameAsWorker"
                )
            return Configuration.WORKERS_ONLY, UNCHANGED
        if master is None:
            if is_same is False:
                self.reading.refuse(
                    "masterSpec", "must be given where masterSpecSameAsWorker is false"
                )
            return _choose_configuration(spec.framework), UNCHANGED
        if is_same:
            self.reading.refuse(
                "masterSpec", "can be given only where masterSpecSameAsWorker is not true"
            )
        places.add_field("configuration", "masterSpec")
        self._require_same_lifecycle(master, spec)
        values = {"environment.image": ""} | self._read_fields(
            master, "masterSpec", POD_FIELDS, "master.", places
        )
        setup = build_part(Setup, values)
        return Configuration.WORKERS_AND_MASTER, MasterChanges.from_setups(spec.setup, setup)

    def _require_same_lifecycle(self, master: Any, spec: Spec) -> None:
        """Refuse lifecycle fields of the master that differ from the workers'.

        Master and workers share them here; the API lets them be given twice.
        """
        for field in SHARED_FIELDS:
            value = getattr(master, field.rest)
            shared = CODECS[field.path].write(get_value(spec, field.path))
            # Types are compared too, since in Python 1 == True.
            is_same = value == shared and type(value) is type(shared)
            if value not in (None, "", [], {}) and not is_same:
                self.reading.refuse(
                    f"masterSpec.{field.rest}",
                    "must be that of spec: this version has one for all pods",
                )

    def _build_refuse(self, place: str) -> Any:
        return lambda text: self.reading.refuse(place, text)

    def _build_part_refuse(self, place: str) -> Refuse:
        return lambda below, text: self.reading.refuse(".".join(filter(None, (place, below))), text)


def _choose_configuration(framework: Framework | None) -> Configuration:
    """Return the usual configuration of a framework."""
    return framework.configurations[0] if framework else Configuration.WORKERS_AND_MASTER


def _get_at(body: Any, place: str) -> Any:
    for name in place.split("."):
        body = getattr(body, name)
    return body


def _add_name_places(path: str, place: str, reading: Reading[Any], places: BodyPlaces) -> None:
    """Record the places of names that are objects of their own in a body."""
    for number, index in enumerate(reading.kept_indexes.get(place, ())):
        places.add_field(f"{path}.{number}", f"{place}.{index}")
