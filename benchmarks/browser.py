"""A process of one real Chromium with the table open, which reports when each row was new in the
page.

`browser.py URL` reads a session key, one line; prints "ready" once the page follows its stream,
and, once the input ends, one line of JSON: a list of [milliseconds since 1970, workload, text of
the pods cell].
"""

import json
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.chromium import FLAGS, find_chromium

WATCH = """() => {
  window.seen = [];
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) {
      if (node.nodeName === "TR") {
        const pods = node.querySelector("td[data-column=pods]").textContent.trim();
        window.seen.push([Date.now(), node.dataset.id, pods]);
      }
    }
  }).observe(document.body, { childList: true, subtree: true });
}"""


def main(url: str) -> None:
    session = sys.stdin.readline().strip()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.add_cookies([{"name": "muster_session", "value": session, "url": url}])
        page = context.new_page()
        with page.expect_response(lambda answer: "/workloads/live" in answer.url):
            page.goto(f"{url}/workloads")
        page.evaluate(WATCH)
        print("ready", flush=True)
        while not ended.is_set():
            # Only a page that is waited for handles its events.
            page.wait_for_timeout(100)
        print(json.dumps(page.evaluate("() => window.seen")), flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
