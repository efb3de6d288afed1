"""A process beside the benchmark that watches the same pods as the follower, and does nothing but
note when each event arrives.

`raw_watch.py KUBECONFIG`: prints "ready" once its watch is open; when its input ends, a JSON list
of [uid, version, ns since 1970].
"""

import json
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

from kubehttp import Connection, Server, open_http

PODS = f"/api/v1/pods?labelSelector={quote('app.kubernetes.io/managed-by=muster')}"


def main(kubeconfig: Path) -> None:
    server = Server.from_kubeconfig(kubeconfig)
    with Connection(server) as connection:
        version = connection.get(f"{PODS}&limit=1")["metadata"]["resourceVersion"]
    arrivals: list[tuple[str, str, int]] = []
    watching = open_http(server)
    watching.request(
        "GET",
        f"{PODS}&watch=1&timeoutSeconds=3600&resourceVersion={version}",
        None,
        server.headers(),
    )
    answer = watching.getresponse()
    if answer.status != 200:
        raise SystemExit(f"the watch was refused: {answer.status} {answer.read(300)!r}")

    def read_changes() -> None:
        while line := answer.readline():
            at = time.time_ns()
            metadata = json.loads(line)["object"]["metadata"]
            arrivals.append((metadata["uid"], metadata["resourceVersion"], at))

    threading.Thread(target=read_changes, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(arrivals))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
