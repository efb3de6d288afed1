"""A proxy before an API that does not run its pods: it streams their logs itself, and the events of
a storm.

`streaming_proxy.py KUBECONFIG OUT LINES`: writes a kubeconfig that leads to it to OUT and prints
"ready". Each log that is followed gets LINES lines a second. A line of its input begins a storm:
{"rate": events a second, "seconds": ..., "storm": [[namespace, pod, uid], ...], "other":
[namespace, pod, uid]}. When its input ends it prints, as JSON, how many logs were followed at once,
how many events of the storm were sent, and when (ns since 1970) each event of the other pod was
due.
"""

import asyncio
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvloop
from forgetting_proxy import ForgettingProxy
from kubehttp import Server

LOG = re.compile(rb"GET \S*/pods/([^/\s]+)/log\?\S*follow=[1tT]")
EVENTS = re.compile(rb"GET \S*/events\?\S*watch=[1tT]")
VERSION = re.compile(rb"resourceVersion=(\d+)")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
TICK = 0.02
OTHER_RATE = 10
"""Events a second of the pod that is not part of the storm."""
OTHER_REASON = "Beside"


class StreamingProxy(ForgettingProxy):
    """A forgetting proxy that answers what no kubelet is there to answer."""

    def __init__(self, server: Server, lines: float) -> None:
        super().__init__(server, uvloop.new_event_loop())
        self._lines = lines
        self._logs = 0
        self.most_logs = 0
        self._events: asyncio.StreamWriter | None = None
        self._version = 0
        self.storm_events = 0
        self.other_events: dict[str, int] = {}
        """When each event of the other pod was due, by its number."""

    async def answer_request(
        self, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Stream a followed log, or take over a watch of events."""
        if (match := LOG.match(data)) is not None:
            await self._stream_log(match[1], writer)
            return True
        if EVENTS.match(data):
            version = VERSION.search(data)
            self._version = max(self._version, int(version[1]) if version else 0)
            writer.write(HEAD % b"application/json")
            self._events = writer
            await reader.read()
            return True
        return False

    async def _stream_log(self, pod: bytes, writer: asyncio.StreamWriter) -> None:
        self._logs += 1
        self.most_logs = max(self.most_logs, self._logs)
        try:
            writer.write(HEAD % b"text/plain")
            number = 0
            while not writer.is_closing():
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
                text = f"{stamp}.{time.time_ns() % 10**9:09d}Z step {number}, loss 0.1234"
                line = text.encode() + b" of " + pod + b" " + b"." * 60 + b"\n"
                writer.write(b"%x\r\n%s\r\n" % (len(line), line))
                await writer.drain()
                number += 1
                await asyncio.sleep(1 / self._lines)
        finally:
            self._logs -= 1

    def run_storm(self, storm: dict[str, Any]) -> None:
        """Send a storm of events to the newest watch of events, and some of another pod beside."""
        self._run(self._send_storm(storm), storm["seconds"] + 60)

    async def _send_storm(self, storm: dict[str, Any]) -> None:
        if self._events is None:
            raise SystemExit("nobody watches events")
        rate, seconds = storm["rate"], storm["seconds"]
        began = time.monotonic()
        began_ns = time.time_ns()
        others = 0
        while (elapsed := time.monotonic() - began) < seconds:
            frames = []
            while self.storm_events < elapsed * rate:
                subject = storm["storm"][self.storm_events % len(storm["storm"])]
                frames.append(self._build_frame(subject, "BackOff", f"storm {self.storm_events}"))
                self.storm_events += 1
                if len(frames) >= rate:
                    break
            while others < elapsed * OTHER_RATE:
                due = began_ns + others * 10**9 // OTHER_RATE
                self.other_events[f"beside {others}"] = due
                frames.append(self._build_frame(storm["other"], OTHER_REASON, f"beside {others}"))
                others += 1
            body = b"".join(frames)
            if body and not self._events.is_closing():
                self._events.write(b"%x\r\n%s\r\n" % (len(body), body))
                await self._events.drain()
            await asyncio.sleep(TICK)

    def _build_frame(self, subject: list[str], reason: str, message: str) -> bytes:
        namespace, pod, uid = subject
        self._version += 1
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{pod}.{self._version:x}",
                "namespace": namespace,
                "uid": f"00000000-0000-0000-0000-{self._version:012x}",
                "resourceVersion": str(self._version),
                "creationTimestamp": now,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": pod,
                "uid": uid,
            },
            "reason": reason,
            "message": message,
            "type": "Warning",
            "source": {"component": "kubelet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        return json.dumps({"type": "ADDED", "object": event}).encode() + b"\n"


def main(kubeconfig: Path, out: Path, lines: float) -> None:
    with StreamingProxy(Server.from_kubeconfig(kubeconfig), lines) as proxy:
        out.write_text(proxy.build_kubeconfig())
        print("ready", flush=True)
        for line in sys.stdin:
            threading.Thread(target=proxy.run_storm, args=(json.loads(line),), daemon=True).start()
        results = {
            "logs": proxy.most_logs,
            "storm": proxy.storm_events,
            "others": proxy.other_events,
        }
        print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
