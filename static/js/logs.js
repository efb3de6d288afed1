// Logs: windows of lines from the server, a stream of new ones, and at most a few thousand of them in the page.
// What a program wrote reaches the page only as text nodes.
"use strict";

(() => {
  const MOST = 3000;
  const NEAR = 400;
  const CHUNK = 500;
  const KEPT = ["wrap", "times"];
  const SLEEP = 5000;
  const RETRY = 5000;

  class Log {
    constructor(root) {
      this.root = root;
      this.box = root.querySelector("[data-lines]");
      this.bar = root.querySelector("[data-logs-bar]");
      this.said = root.querySelector("[data-found]");
      this.foot = root.querySelector("[data-state]");
      this.pods = root.querySelector(".lg-tabs");
      this.toEnd = root.querySelector("[data-end]");
      this.chunks = [];
      this.logs = {};
      this.floor = "";
      this.atStart = this.atEnd = this.over = this.whole = this.settled = false;
      this.nothing = "";
      this.loading = null;
      this.turn = 0;
      this.asleep = document.hidden;
      this.onVisibility = () => this.followVisibility();
      document.addEventListener("visibilitychange", this.onVisibility);
      // Of the few places for streams, the window that one turns to gets one.
      this.onFocus = () => { if (this.displaced) { this.follow(); this.state(); } };
      window.addEventListener("focus", this.onFocus);
      this.controls();
      this.open(root.dataset.at ? { at: root.dataset.at } : {}, !root.dataset.at);
    }

    // What the person sets.

    controls() {
      const { bar, box } = this;
      KEPT.forEach((name) => {
        const kept = localStorage.getItem(`muster-log-${name}`);
        if (kept !== null) bar.elements[name].checked = kept === "1";
      });
      this.looks();
      bar.addEventListener("submit", (event) => { event.preventDefault(); this.find("down"); });
      bar.addEventListener("change", (event) => this.changed(event.target));
      bar.elements.q.addEventListener("input", () => { this.place = null; this.said.textContent = ""; });
      bar.querySelectorAll("[data-find]").forEach((button) => button.addEventListener("click", () => this.find(button.dataset.find)));
      this.toEnd.addEventListener("click", () => { bar.elements.follow.checked = true; this.open({}, true); });
      box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    }

    changed(input) {
      if (input.dataset.goes !== undefined) { location.assign(input.value); return; }
      if (KEPT.includes(input.name)) { localStorage.setItem(`muster-log-${input.name}`, input.checked ? "1" : "0"); this.looks(); }
      if (input.name === "bound") { this.floor = ""; this.open({}, true); }
      if (input.name === "regex" || input.name === "case") { this.place = null; }
      if (input.name === "follow") { if (input.checked) this.open({}, true); else { this.follow(); this.state(); } }
    }

    looks() {
      this.box.classList.toggle("lg-lines--wrap", this.bar.elements.wrap.checked);
      this.box.classList.toggle("lg-lines--times", this.bar.elements.times.checked);
    }

    get following() { return this.bar.elements.follow.checked; }

    get words() {
      const { q, regex } = this.bar.elements;
      if (!q.value) return {};
      return { q: q.value, ...(regex.checked && { regex: "1" }), ...(this.bar.elements.case.checked && { case: "1" }) };
    }

    address(kind, more) {
      const url = new URL(this.root.dataset[kind], location.href);
      url.search = this.root.dataset.query;
      if (this.root.dataset.pane !== undefined) url.searchParams.set("pane", "1");
      if (this.floor) url.searchParams.set("floor", this.floor);
      else if (this.bar.elements.bound.value) url.searchParams.append(...this.bar.elements.bound.value.split("="));
      Object.entries(more).forEach(([name, value]) => url.searchParams.set(name, value));
      return url;
    }

    // Windows.

    async ask(more) {
      const answer = await fetch(this.address("window", { ...this.words, ...more }), { headers: { Accept: "application/jsonl" } });
      await check(answer);
      const [head, ...items] = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
      Object.assign(this.logs, head.logs);
      return { head, items };
    }

    // Shows one window in place of all there is; `end` says to stay at the end and to follow.
    async open(more, end) {
      const turn = ++this.turn;
      this.unfollow();
      try {
        const { head, items } = await this.ask(more);
        if (turn !== this.turn) return;
        this.floor = head.floor && this.bar.elements.bound.value ? head.floor : "";
        this.stands(head);
        this.atStart = head.at_start;
        this.atEnd = head.at_end;
        this.whole = head.over && head.at_end;
        this.chunks.forEach((chunk) => chunk.element.remove());
        this.chunks = [];
        this.add(items, head.start, head.end, "end");
        this.notes(head.notes);
        this.empty();
        if (end) this.down();
        else { this.bar.elements.follow.checked = false; this.show(head.target || (more.at === undefined ? "" : more.at)); }
        this.scrolled();
        this.follow();
        this.state();
      } catch (error) { this.trouble(error); }
    }

    add(items, start, end, where) {
      const last = this.chunks[this.chunks.length - 1];
      const fragment = document.createDocumentFragment();
      items.forEach((item) => { if (item.logs) Object.assign(this.logs, item.logs); else fragment.append(this.line(item)); });
      const count = fragment.childElementCount;
      if (where === "end" && last && last.count + count <= CHUNK) {
        last.element.append(fragment);
        last.count += count;
        last.end = end;
        return;
      }
      const element = document.createElement("div");
      element.append(fragment);
      const chunk = { element, start, end, count };
      if (where === "end") { this.box.append(element); this.chunks.push(chunk); } else { this.box.prepend(element); this.chunks.unshift(chunk); }
    }

    get count() { return this.chunks.reduce((sum, chunk) => sum + chunk.count, 0); }

    get stuck() { return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40; }

    down() { this.box.scrollTop = this.box.scrollHeight; }

    scrolled() {
      const { box } = this;
      this.toEnd.hidden = this.stuck && this.atEnd;
      if (this.loading || !this.chunks.length) return;
      if (box.scrollTop < NEAR && !this.atStart) this.more("before");
      else if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR && !this.atEnd) this.more("after");
    }

    more(way) {
      const { turn, over } = this;
      const edge = way === "before" ? this.chunks[0].start : this.chunks[this.chunks.length - 1].end;
      let pause = 50;
      this.loading = this.ask({ [way]: edge }).then(({ head, items }) => {
        if (turn !== this.turn) return;
        if (way === "before") this.above(head, items); else this.below(head, items, over);
      }).catch((error) => {
        // Not at once: a server that fails must not be asked twenty times a second by each page.
        pause = RETRY;
        this.trouble(error);
      }).finally(() => setTimeout(() => { this.loading = null; if (this.alive) this.scrolled(); }, pause));
    }

    above(head, items) {
      const { box } = this;
      const before = box.scrollHeight - box.scrollTop;
      this.add(items, head.start, head.end, "start");
      box.scrollTop = box.scrollHeight - before;
      this.atStart = head.at_start;
      while (this.count > MOST && this.chunks.length > 1) {
        this.chunks.pop().element.remove();
        this.atEnd = this.whole = false;
      }
      this.follow();
      this.state();
    }

    // `over` is what was known when this was asked for: what was written between an end and the news that it is the last is still to come.
    below(head, items, over) {
      this.add(items, head.start, head.end, "end");
      this.atEnd = head.at_end;
      this.whole = over && head.at_end;
      this.shed();
      this.follow();
      this.state();
    }

    // Takes lines away at the top, and keeps what one reads where it is.
    shed() {
      while (this.count > MOST && this.chunks.length > 1) {
        const first = this.chunks.shift();
        const height = first.element.offsetHeight;
        const top = this.box.scrollTop;
        first.element.remove();
        this.box.scrollTop = Math.max(0, top - height);
        this.atStart = false;
      }
    }

    // New lines.

    // A page that nobody sees holds no stream: of those a browser opens to a server there are six at most.
    followVisibility() {
      window.clearTimeout(this.sleepTimer);
      if (!this.alive) { this.leave(); return; }
      if (document.hidden) { this.sleepTimer = window.setTimeout(() => { this.asleep = true; this.unfollow(); }, SLEEP); return; }
      if (!this.asleep) return;
      this.asleep = false;
      this.follow();
      this.state();
    }

    // Listens to the lines that come, where they are wanted and have a place; else only to how things stand, until they are settled.
    follow(takesOver = true) {
      this.displaced = false;
      if (this.asleep) { this.unfollow(); return; }
      const lines = this.following && this.atEnd && !this.whole && this.chunks.length > 0;
      if (this.settled && !lines) { this.unfollow(); return; }
      if (this.source && this.lines === lines) return;
      this.unfollow();
      const url = this.address("stream", lines ? { after: this.chunks[this.chunks.length - 1].end } : { quiet: "1" });
      url.searchParams.delete("floor");
      const source = window.muster.openStream(url, { weight: 2, takesOver, onLost: () => this.displace() });
      Object.assign(this, { source, lines });
      if (!source) { this.displace(); return; }
      const heard = (name, take) => source.addEventListener(name, (event) => {
        if (!this.alive) this.unfollow(); else if (this.source === source) { take(event); this.state(); }
      });
      heard("lines", (event) => this.came(event));
      heard("gaps", (event) => this.came(event));
      heard("state", (event) => { this.stands(JSON.parse(event.data)); this.whole ||= lines && this.over; });
      heard("over", () => this.unfollow());
      source.addEventListener("open", () => this.state());
      source.addEventListener("error", () => {
        // A browser gives up after a refusal; after anything else it comes back by itself, from the last line it had.
        if (source.readyState === EventSource.CLOSED && this.source === source) { this.source = null; setTimeout(() => this.alive && this.follow(false), 5000); }
        this.state();
      });
    }

    // Other windows have all places: this one goes on when it is turned to, or when one of them is free.
    displace() {
      this.source = null;
      this.displaced = true;
      this.state();
      window.clearTimeout(this.waiting);
      this.waiting = window.setTimeout(() => {
        if (!this.alive) { this.leave(); return; }
        if (this.displaced) { this.follow(false); this.state(); }
      }, SLEEP);
    }

    leave() {
      window.clearTimeout(this.waiting);
      this.displaced = false;
      this.unfollow();
      document.removeEventListener("visibilitychange", this.onVisibility);
      window.removeEventListener("focus", this.onFocus);
    }

    came(event) {
      const stuck = this.stuck;
      const last = this.chunks[this.chunks.length - 1];
      this.add(JSON.parse(event.data), last.end, event.lastEventId, "end");
      this.empty();
      if (stuck) { this.shed(); this.down(); } else if (this.count > MOST + CHUNK) { this.atEnd = this.whole = false; this.toEnd.hidden = false; this.follow(); }
    }

    unfollow() {
      if (this.source) this.source.close();
      this.source = null;
    }

    // How things stand: told whole with a window and when a stream begins, and of what has changed after that.
    stands({ order, tabs, pods, over, settled, nothing }) {
      Object.assign(this, { over, settled, nothing });
      const finder = this.root.querySelector("[data-finder]");
      finder.hidden = pods <= order.length;
      finder.querySelector("[data-tab-count]").textContent = order.length;
      finder.querySelector("[data-pod-count]").textContent = pods;
      const old = new Map([...this.pods.querySelectorAll("[data-pod]")].map((each) => [each.dataset.pod, each]));
      let at = this.pods.firstElementChild;
      order.map(String).forEach((pod) => {
        const each = place(old.get(pod), tabs[pod]);
        if (!each) return;
        if (at.nextElementSibling !== each) at.after(each);
        // At once: a link that is in the page before htmx knows it would load the whole page.
        if (tabs[pod] !== undefined) window.htmx.process(each);
        old.delete(pod);
        at = each;
      });
      old.forEach((each) => each.remove());
    }

    get alive() { return document.contains(this.root); }

    // Searching.

    async find(way) {
      const words = this.words;
      if (!words.q || this.searching) return;
      this.searching = true;
      this.said.textContent = "Searching";
      try { await this.search(way, words); } catch (error) { this.said.textContent = error.message; }
      this.searching = false;
    }

    async search(way, words) {
      let cursor = this.place || (way === "up" && this.chunks.length ? this.chunks[this.chunks.length - 1].end : "");
      let searched = 0;
      for (;;) {
        const at = way === "up" ? { before: cursor } : cursor ? { after: cursor } : {};
        const answer = await fetch(this.address("search", { ...words, ...at }));
        await check(answer);
        const found = await answer.json();
        searched += found.searched;
        cursor = found.cursor;
        if (!this.alive || this.bar.elements.q.value !== words.q) return;
        if (found.hit) {
          const hit = `${found.hit.l}.${found.hit.o}`;
          this.place = cursor;
          if (hit === this.hit && way !== this.way) { this.way = way; continue; }
          this.hit = hit;
          this.way = way;
          this.said.textContent = "";
          await this.open({ at: hit }, false);
          return;
        }
        if (found.finished) {
          this.place = null;
          this.said.textContent = this.hit ? `No more ${way === "up" ? "above" : "below"}: the next search begins anew.` : "Nothing found.";
          this.hit = null;
          return;
        }
        this.said.textContent = `Nothing in ${Math.round(searched / 1048576)} MiB so far, searching on`;
      }
    }

    // One line.

    line(item) {
      const row = document.createElement("div");
      if (item.gap !== undefined) {
        row.className = "lg-gap";
        row.textContent = item.gap;
        return row;
      }
      const who = this.logs[item.l] || {};
      row.className = "lg-line";
      row.dataset.at = `${item.l}.${item.o}`;
      if (this.root.dataset.query.startsWith("attempt")) row.append(label(who));
      row.append(time(item, this.root.dataset.query));
      const text = document.createElement("span");
      text.className = "lg-text";
      pieces(item).forEach(([piece, classes]) => {
        if (!classes) { text.append(piece); return; }
        const span = document.createElement(classes.includes("lg-hit") ? "mark" : "span");
        span.className = classes;
        span.textContent = piece;
        text.append(span);
      });
      if (item.cut) {
        const cut = document.createElement("span");
        cut.className = "lg-cut";
        cut.textContent = ` … ${item.cut.toLocaleString("en-GB")} more bytes of this line are in the download`;
        text.append(cut);
      }
      row.append(text);
      return row;
    }

    show(target) {
      const at = String(target);
      const row = [...this.box.querySelectorAll(".lg-line")].find((each) => each.dataset.at === at || each.dataset.at.split(".")[1] === at);
      this.box.querySelectorAll(".lg-line--target").forEach((each) => each.classList.remove("lg-line--target"));
      if (!row) return;
      row.classList.add("lg-line--target");
      this.box.scrollIntoView({ block: "nearest" });
      this.box.scrollTop = row.offsetTop - this.box.clientHeight / 3;
    }

    // What is said beside the lines.

    notes(texts) {
      const box = this.root.querySelector("[data-notes]");
      box.replaceChildren(...texts.map((text) => { const note = document.createElement("p"); note.className = "lg-note"; note.textContent = text; return note; }));
    }

    empty() { this.box.classList.toggle("lg-lines--empty", this.count === 0); }

    state() {
      // A gap is a row, but no line.
      const lines = this.box.getElementsByClassName("lg-line").length;
      const listens = this.source && this.lines;
      const live = listens && this.source.readyState === EventSource.OPEN && !this.over;
      const word = this.over ? "Complete" : live ? "Live" : listens ? "Connecting" : this.displaced ? "Paused while other windows are live" : "Paused";
      const text = this.count ? `${word} · ${lines.toLocaleString("en-GB")} line${lines === 1 ? "" : "s"} in view` : this.over ? this.nothing : `${word} · ${this.nothing}`;
      // What is set again is read out again.
      if (this.foot.textContent !== text) this.foot.textContent = text;
      this.foot.classList.toggle("lg-live", !!live);
    }

    trouble(error) { this.foot.textContent = error.message || "The log could not be loaded. Load the page again."; }
  }

  // A pod's tab as it is now. The one that is there is changed where it stands: it may have the focus, or just be clicked.
  function place(old, html) {
    if (html === undefined) return old;
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const fresh = holder.content.firstElementChild;
    if (!old) return fresh;
    if (old.tagName !== fresh.tagName) { old.remove(); return fresh; }
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (!fresh.hasAttribute("aria-current")) old.removeAttribute("aria-current");
    const parts = [...fresh.childNodes];
    const same = parts.findIndex((part, index) => !old.childNodes[index] || !part.isEqualNode(old.childNodes[index]));
    const kept = same === -1 ? parts.length : same;
    while (old.childNodes.length > kept) old.lastChild.remove();
    old.append(...parts.slice(kept));
    return old;
  }

  function label(who) {
    const span = document.createElement("span");
    span.className = `lg-who lg-rank--${who.colour}`;
    // The span is laid out from right to left; the name in it is read from left to right, whatever it begins with.
    const name = document.createElement("bdi");
    name.dir = "ltr";
    name.textContent = who.rank === null || who.rank === undefined ? who.pod : who.rank;
    span.append(name);
    span.title = `${who.pod}, ${who.container}${who.run ? `, run ${who.run + 1}` : ""}`;
    return span;
  }

  function time(item, query) {
    const link = document.createElement("a");
    link.className = "lg-time";
    link.href = `?${query}&at=${item.l}.${item.o}`;
    link.tabIndex = -1;
    link.title = item.t;
    if (!item.t) return link;
    const at = new Date(`${item.t.slice(0, 23)}Z`);
    link.textContent = `${at.toLocaleTimeString([], { hour12: false })}.${item.t.slice(20, 23)}`;
    return link;
  }

  // The text cut where a colour or a match begins or ends. Positions count code points.
  function pieces(item) {
    if (!item.s && !item.m) return [[item.x, ""]];
    const chars = /[\ud800-\udfff]/.test(item.x) ? Array.from(item.x) : null;
    const cut = (from, to) => (chars ? chars.slice(from, to).join("") : item.x.slice(from, to));
    const length = chars ? chars.length : item.x.length;
    const spans = item.s || [];
    const marks = (item.m || []).map(([from, to]) => [from, to, "lg-hit"]);
    const edges = [...new Set([0, length, ...spans.flatMap((span) => span.slice(0, 2)), ...marks.flatMap((mark) => mark.slice(0, 2))])];
    edges.sort((one, other) => one - other);
    const found = [];
    edges.forEach((from, index) => {
      const to = edges[index + 1];
      if (to === undefined) return;
      const classes = [...spans, ...marks].filter((span) => span[0] <= from && span[1] >= to).map((span) => span[2]);
      found.push([cut(from, to), classes.join(" ")]);
    });
    return found;
  }

  // Whoever is signed out is sent to the page where one signs in.
  async function check(answer) {
    if (answer.redirected) throw new Error("You were signed out, or what you may see has changed. Load the page again.");
    if (!answer.ok) throw new Error(await refusal(answer));
  }

  async function refusal(answer) {
    if ([400, 422, 503].includes(answer.status)) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const told = page.querySelector("[data-refused], .mu-alert__text, main p");
      if (told) return told.textContent.trim();
    }
    if (answer.status === 404) return "This log is not there any more, or you may not see it.";
    return `The log could not be loaded (${answer.status}).`;
  }

  const open = new WeakMap();
  function start(where) {
    const roots = where.matches && where.matches("[data-logs]") ? [where] : where.querySelectorAll("[data-logs]");
    roots.forEach((root) => { if (!open.has(root)) open.set(root, new Log(root)); });
  }
  document.addEventListener("htmx:load", (event) => start(event.detail.elt));
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    const log = open.get(event.detail.elt);
    if (log) log.leave();
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => start(document)); else start(document);
})();
