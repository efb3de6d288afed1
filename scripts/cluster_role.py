"""Writes deploy/kustomize/cluster/clusterrole.yaml from clusters/permissions.py: what Muster may do
in a cluster, and nothing else.
"""

import sys
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE))

from clusters.permissions import NEEDED  # noqa: E402 - the path comes first

DOCUMENT = BASE / "deploy" / "kustomize" / "cluster" / "clusterrole.yaml"
HEAD = """# What Muster may do in a cluster, made by scripts/cluster_role.py
# from clusters/permissions.py, which says what each verb is for.
# Discovery, and the question what one may do, are open to every user and not in here.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: muster
rules:
"""


def document() -> str:
    """The text of the manifest: one rule for all kinds of a group that need the same verbs."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for need in NEEDED:
        name = (
            f"{need.resource.plural}/{need.subresource}"
            if need.subresource
            else need.resource.plural
        )
        resource_verbs = verbs.setdefault((need.resource.group, name), [])
        if need.verb not in resource_verbs:
            resource_verbs.append(need.verb)
    rules: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, name), its in verbs.items():
        rules.setdefault((group, tuple(its)), []).append(name)
    return HEAD + "".join(
        f'  - apiGroups: ["{group}"]\n    resources: [{", ".join(names)}]\n    verbs: '
        f"[{', '.join(its)}]\n"
        for (group, its), names in rules.items()
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document())
