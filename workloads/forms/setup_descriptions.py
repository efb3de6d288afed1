"""Descriptions of the values of a Setup in a few words, for pages."""

from typing import Any

from workloads import quantities
from workloads.specs import (
    Architecture,
    Compute,
    Configuration,
    DataDelivery,
    Framework,
    Gpus,
    Security,
    Topology,
    Variable,
    Volume,
    VolumeAccess,
    join_command_line,
)


def describe_value(value: Any) -> str:
    """Describe a value of a setup in one line."""
    match value:
        case None | "" | ():
            return "none, or the default"
        case bool():
            return "yes" if value else "no"
        case Gpus():
            return describe_gpus(value)
        case Security():
            return "as the image and the cluster have it" if value == Security() else "changed"
        case Topology():
            return f"{value.key}, {'required' if value.required else 'preferred'}"
        case tuple():
            return (
                ", ".join(map(_describe_item, value))
                if not isinstance(value[0], str)
                else join_command_line(value)
            )
        case _:
            return str(getattr(value, "value", value))


def describe_configuration(configuration: Configuration, framework: Framework | None) -> str:
    """Describe a configuration with the framework's word for its master: "Workers & chief"."""
    if configuration is Configuration.WORKERS_ONLY or framework is None:
        return configuration.label
    return f"Workers & {framework.master_name}"


def describe_kind(
    architecture: Architecture, framework: Framework | None, configuration: Configuration | None
) -> str:
    """Describe the kind of a workload.

    The configuration is left out where the framework has only one.
    """
    if architecture is not Architecture.DISTRIBUTED or framework is None:
        return architecture.label
    has_choice = configuration is not None and len(framework.configurations) > 1
    shape = describe_configuration(configuration, framework) if has_choice and configuration else ""
    return ", ".join(filter(None, (architecture.label, framework.label, shape)))


def describe_gpus(gpus: Gpus) -> str:
    """Describe GPUs: "2 GPUs", "10 % of a GPU", "500M of the memory of 1 GPU", "no GPU"."""
    if gpus.memory:
        return f"{gpus.memory} of the memory of {quantities.format_count(gpus.device_count, 'GPU')}"
    if gpus.is_shared and gpus.portion is not None:
        devices = "a GPU" if gpus.device_count == 1 else f"each of {gpus.device_count} GPUs"
        return f"{quantities.format_number(gpus.portion * 100)} % of {devices}"
    return quantities.format_count(gpus.device_count, "GPU") if gpus.device_count else "no GPU"


def describe_compute(compute: Compute) -> str:
    """Describe compute: "10 % of a GPU, 0.1 CPU, 100M memory"."""
    parts = [describe_gpus(compute.gpus)]
    parts += [f"{compute.cpu_request} CPU"] if compute.cpu_request else []
    parts += [f"{compute.memory_request} memory"] if compute.memory_request else []
    return ", ".join(parts)


def describe_data_delivery(delivery: DataDelivery) -> str:
    """Describe data workers: "2, 4 CPU, 8Gi memory each; 20,480 units prepared before …"."""
    compute = delivery.compute
    parts = [f"{delivery.workers}"]
    parts += [f"{compute.effective_cpu_request} CPU"] if compute.cpu_request else []
    parts += [f"{compute.effective_memory_request} memory"] if compute.memory_request else []
    each = f"{', '.join(parts)} each" if len(parts) > 1 else parts[0]
    image = f", of the image {delivery.image}" if delivery.image else ""
    if not delivery.units:
        return f"{each}{image}; nothing is prepared before GPUs are taken"
    units = quantities.format_count(delivery.units, "unit")
    return f"{each}{image}; {units} prepared before GPUs are taken"


def describe_volume(volume: Volume) -> str:
    """Describe a volume: "Git repository at /code, writable by rank 0 only"."""
    access_notes = {
        VolumeAccess.READ_ONLY: ", read-only",
        VolumeAccess.RANK_0_WRITES: ", writable by rank 0 only",
    }
    return f"{volume.noun} at {volume.path}{access_notes.get(volume.access, '')}"


def _describe_item(item: Any) -> str:
    if isinstance(item, Variable):
        return item.name
    if isinstance(item, Volume):
        return describe_volume(item)
    return str(getattr(item, "key", "") or getattr(item, "resource", "") or "every taint")
