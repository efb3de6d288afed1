"""Where the data of a workload may be fetched from: what its pods are told to connect to."""

from collections.abc import Iterator, Sequence

from console import url_safety
from workloads.specs import S3, Git, Nfs, Setup, Spec


def find_address_problems(spec: Spec, *, is_local: bool) -> Sequence[tuple[str, str]]:
    """The addresses that lead where they may not, as (field, text); `is_local` says that its
    cluster is the embedded one.
    """
    there = url_safety.build_source_policy(is_local=is_local)
    found = [(f"setup.{field}", text) for field, text in _find_volume_problems(spec.setup, there)]
    if spec.has_master:
        known = {text for _, text in found}
        found += [
            (f"master.{field}", text)
            for field, text in _find_volume_problems(spec.master_setup, there)
            if text not in known
        ]
    return found


def _find_volume_problems(
    setup: Setup, there: url_safety.AddressPolicy
) -> Iterator[tuple[str, str]]:
    for index, volume in enumerate(setup.volumes):
        where = f"of volume {index + 1}"
        match volume:
            case Git() if not volume.repository.startswith("file://"):
                why = url_safety.find_url_problem(
                    volume.repository, there, schemes=url_safety.GIT_SCHEMES, allow_user=True
                )
                field, words = "repository", f"The repository {where}"
            case S3() if volume.url:
                why, field, words = (
                    url_safety.find_url_problem(volume.url, there),
                    "url",
                    f"The service {where}",
                )
            case Nfs():
                why = there.find_host_problem(volume.server)
                why = f"leads where it may not: {why}" if why else ""
                field, words = "server", f"The server {where}"
            case _:
                continue
        if why:
            yield f"volumes.{index}.{field}", f"{words} {why}."
