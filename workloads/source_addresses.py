"""The addresses from which a workload's pods fetch data, checked for where they may lead."""

from collections.abc import Iterator, Sequence

from console import url_safety
from workloads.specs import S3, Git, Nfs, Setup, Spec


def find_address_problems(spec: Spec, *, is_local: bool) -> Sequence[tuple[str, str]]:
    """Return the forbidden addresses of a spec as (field, text) pairs.

    `is_local` says that its cluster is the embedded one.
    """
    allowed = url_safety.build_source_policy(is_local=is_local)
    problems = [
        (f"setup.{field}", text) for field, text in _find_volume_problems(spec.setup, allowed)
    ]
    if spec.has_master:
        reported = {text for _, text in problems}
        problems += [
            (f"master.{field}", text)
            for field, text in _find_volume_problems(spec.master_setup, allowed)
            if text not in reported
        ]
    return problems


def _find_volume_problems(
    setup: Setup, allowed: url_safety.AddressPolicy
) -> Iterator[tuple[str, str]]:
    for index, volume in enumerate(setup.volumes):
        where = f"of volume {index + 1}"
        match volume:
            case Git() if not volume.repository.startswith("file://"):
                why = url_safety.find_url_problem(
                    volume.repository, allowed, schemes=url_safety.GIT_SCHEMES, allow_user=True
                )
                field, words = "repository", f"The repository {where}"
            case S3() if volume.url:
                why, field, words = (
                    url_safety.find_url_problem(volume.url, allowed),
                    "url",
                    f"The service {where}",
                )
            case Nfs():
                why = allowed.find_host_problem(volume.server)
                why = f"leads where it may not: {why}" if why else ""
                field, words = "server", f"The server {where}"
            case _:
                continue
        if why:
            yield f"volumes.{index}.{field}", f"{words} {why}."
