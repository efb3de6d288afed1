// Keeps what one looks at fresh: rows of the table, and the parts of a workload's details. A stream tells what changed; where there is
// none, it asks every few seconds. Nothing that one is reading moves: new rows wait behind a button then.
"use strict";

(() => {
  // A browser opens six connections to a server at most: pages that nobody sees must not hold them.
  const SLEEP = 5_000, SLOW = 60_000, POLL = 5_000, RETRY = 30_000, SOON = 1_000;

  const reload = () => window.muster.unsaved.reloadWhenDone("What you may see has changed, or you were signed out. This page is loaded anew when you have sent or closed what you are at.");

  // One address followed: a stream while the page is seen, questions where the stream is refused.
  class Follower {
    constructor(live, changes, position, apply) {
      Object.assign(this, { live, changes, position, apply, ended: false });
      this.onSeen = () => (document.hidden ? this.sleepSoon() : this.wake());
      document.addEventListener("visibilitychange", this.onSeen);
      // Where other windows have all places for streams, the one that one turns to gets one of them.
      this.onFocus = () => { if (!document.hidden) this.open(); };
      window.addEventListener("focus", this.onFocus);
      if (!document.hidden) this.open();
      this.timer = window.setInterval(() => { if (!document.hidden) this.ask(); }, SLOW);
    }

    url(base) { return `${base}${base.includes("?") ? "&" : "?"}after=${this.position}`; }

    open(takesOver = true) {
      if (this.ended || this.source) return;
      const source = this.source = window.muster.openStream(this.url(this.live), { takesOver, onLost: () => this.lose() });
      if (!source) { this.lose(); return; }
      const take = (event) => this.take(JSON.parse(event.data));
      source.addEventListener("rows", take);
      source.addEventListener("changed", take);
      source.addEventListener("end", () => { this.end(); reload(); });
      source.addEventListener("open", () => this.stopPolling());
      source.addEventListener("error", () => {
        if (source.readyState === EventSource.CLOSED && this.source === source) this.lose();
      });
    }

    // Without a stream it asks, and looks for one again.
    lose() {
      this.source = null;
      this.poll();
      window.clearTimeout(this.retry);
      this.retry = window.setTimeout(() => { if (!document.hidden) this.open(false); }, RETRY);
    }

    take(told) {
      if (this.ended) return;
      this.position = told.position;
      this.apply(told);
    }

    async ask() {
      if (this.ended || !this.changes) return this.ended ? undefined : this.apply({ position: this.position });
      let answer;
      try {
        answer = await fetch(this.url(this.changes), { headers: { "HX-Request": "true" } });
      } catch { return; }
      if (answer.redirected || answer.status === 403) { this.end(); return reload(); }
      if (answer.status !== 200) return;
      const told = await answer.json();
      // The stream may have come further meanwhile.
      if (told.reset || told.position >= this.position) this.take(told);
    }

    poll() { this.polling ??= window.setInterval(() => { if (!document.hidden) this.ask(); }, POLL); }

    stopPolling() {
      window.clearInterval(this.polling);
      this.polling = null;
    }

    sleepSoon() {
      window.clearTimeout(this.bed);
      this.bed = window.setTimeout(() => { this.source?.close(); this.source = null; }, SLEEP);
    }

    wake() {
      window.clearTimeout(this.bed);
      if (!this.source) { this.open(); this.ask(); }
    }

    end() {
      this.ended = true;
      this.source?.close();
      this.stopPolling();
      window.clearInterval(this.timer);
      window.clearTimeout(this.bed);
      window.clearTimeout(this.retry);
      document.removeEventListener("visibilitychange", this.onSeen);
      window.removeEventListener("focus", this.onFocus);
    }
  }

  // Parts that show one workload (dialog, side pane, details) ask for themselves.
  // One that is asking, or has just come, must be told when it stands: what is asked of it before is lost with it.
  const again = new Set();
  const refresh = (id) => {
    for (const each of document.querySelectorAll(`[data-refresh="${CSS.escape(id)}"]`)) {
      if (each.id && each.matches(".htmx-request, .htmx-added")) again.add(each.id);
      else window.htmx.trigger(each, "muster:changed");
    }
  };
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of again) {
      const each = document.getElementById(id);
      if (each?.matches(".htmx-request, .htmx-added")) continue;
      again.delete(id);
      if (each) window.htmx.trigger(each, "muster:changed");
    }
  });

  // What a reader has opened stays open when its part asks for itself.
  let opened = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    opened = [...event.detail.target.querySelectorAll("details[open][id]")].map((each) => each.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened.splice(0)) document.getElementById(id)?.setAttribute("open", "");
  });

  class Table {
    constructor(part) {
      this.part = part;
      this.waiting = new Map();
      this.leaving = new Set();
      this.pill = part.querySelector("[data-pill]");
      this.pill?.addEventListener("click", (event) => {
        this.flush();
        if (this.stale) this.reload();
        else if (!event.detail) part.querySelector(".wl-box")?.focus({ preventScroll: true });
      });
      this.pill?.addEventListener("pointerleave", () => this.settleSoon());
      const box = part.querySelector(".wl-box");
      box?.addEventListener("pointerleave", () => this.settleSoon());
      box?.addEventListener("focusout", () => window.setTimeout(() => this.settle()));
      this.follower = new Follower(part.dataset.live, part.dataset.changes, Number(part.dataset.position), (told) => this.apply(told));
    }

    get body() { return this.part.querySelector("[data-rows]"); }

    row(id) { return document.getElementById(`w-${id}`); }

    // On the way from the rows to the button that tells of new ones, the button must stay.
    settleSoon() {
      window.clearTimeout(this.soon);
      this.soon = window.setTimeout(() => this.settle(), SOON);
    }

    // Whether somebody is at it: then nothing may move.
    get busy() {
      const box = this.part.querySelector(".wl-box");
      if (!box) return false;
      if (this.pill?.matches(":hover, :focus")) return true;
      return box.matches(":hover") || box.contains(document.activeElement) || window.scrollY > 40 || !!this.part.querySelector("[data-choose]:checked");
    }

    apply(told) {
      if (told.reset) { this.stale = true; this.busy ? this.tell() : this.reload(); return; }
      for (const { id, html, created } of told.rows ?? []) {
        this.leaving.delete(id);
        const old = this.row(id);
        if (old) this.replace(old, html); else if (this.belongs(created)) this.waiting.set(id, { html, created });
      }
      for (const id of told.gone ?? []) {
        this.waiting.delete(id);
        const row = this.row(id);
        if (row) { row.classList.add("wl-gone"); this.leaving.add(id); }
      }
      for (const id of [...(told.rows ?? []).map((each) => each.id), ...(told.gone ?? [])]) refresh(id);
      this.settle();
      document.dispatchEvent(new CustomEvent("muster:rows"));
    }

    make(html) {
      const holder = document.createElement("template");
      holder.innerHTML = html;
      const row = holder.content.firstElementChild;
      // A row comes with all columns, as it is the same for everybody: what this table has no head for is left out.
      const shown = new Set([...this.part.querySelectorAll("thead th")].map((head) => head.dataset.column));
      for (const cell of [...row.cells]) if (!shown.has(cell.dataset.column)) cell.remove();
      window.muster?.freshen(holder.content);
      return row;
    }

    // The row changes where it stands; a ticked box and the focus stay.
    replace(old, html) {
      const row = this.make(html);
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      const column = focused?.closest("[data-column]")?.dataset.column;
      const mark = focused?.id ? `#${CSS.escape(focused.id)}` : column ? `[data-column="${CSS.escape(column)}"] ${focused.localName}` : "";
      const ticked = old.querySelector("[data-choose]")?.checked;
      old.replaceWith(row);
      if (ticked) row.querySelector("[data-choose]").checked = true;
      if (mark) row.querySelector(mark)?.focus({ preventScroll: true });
      row.classList.add("wl-changed");
    }

    created(row) { return Number(row.dataset.created || 0); }

    // New rows have a place on the first page of the newest only.
    belongs(created) {
      if (!("first" in this.part.dataset)) return false;
      if (!("newest" in this.part.dataset)) { this.stale = true; return false; }
      const last = this.body?.lastElementChild;
      return !("more" in this.part.dataset) || !last || created > this.created(last);
    }

    settle() {
      if (!this.waiting.size && !this.leaving.size && !this.stale) { if (this.pill) this.pill.hidden = true; return; }
      if (this.busy || this.stale) this.tell(); else this.flush();
    }

    tell() {
      if (!this.pill) return;
      const news = this.waiting.size;
      const text = this.stale ? "The list has changed: show" : news ? `${news} new workload${news > 1 ? "s" : ""}: show` : `${this.leaving.size} left the list: tidy up`;
      this.pill.querySelector("[data-pill-text]").textContent = text;
      this.pill.hidden = false;
    }

    flush() {
      if (this.waiting.size && !this.body) return this.reload();
      for (const id of this.leaving) this.row(id)?.remove();
      this.leaving.clear();
      for (const { html, created } of [...this.waiting.values()].sort((a, b) => a.created - b.created)) {
        const row = this.make(html);
        const before = [...this.body.children].find((each) => this.created(each) <= created);
        row.classList.add("wl-new");
        this.body.insertBefore(row, before ?? null);
      }
      this.waiting.clear();
      while (this.body && this.body.children.length > Number(this.part.dataset.size)) {
        this.body.lastElementChild.remove();
        this.part.dataset.more = "";
      }
      if (this.pill && !this.stale) this.pill.hidden = true;
      document.dispatchEvent(new CustomEvent("muster:rows"));
      if (this.body && !this.body.children.length) this.reload();
    }

    reload() {
      this.stale = false;
      window.htmx.ajax("GET", window.location.href, { target: "#workloads", swap: "outerHTML" });
    }

    end() {
      window.clearTimeout(this.soon);
      this.follower.end();
    }
  }

  let table = null, one = null;

  const start = () => {
    const part = document.querySelector("[data-live]");
    if (table?.part !== part) {
      table?.end();
      table = part ? new Table(part) : null;
    }
    const details = document.querySelector("[data-live-one]");
    if (one?.url !== details?.dataset.liveOne?.split("?")[0]) {
      one?.follower.end();
      one = details ? follow(details) : null;
    }
  };

  const follow = (details) => {
    const [url, query] = details.dataset.liveOne.split("?");
    const position = Number(new URLSearchParams(query).get("after"));
    return { url, follower: new Follower(url, "", position, () => refresh(details.dataset.workload)) };
  };

  // What one did is shown at once, even where no stream tells it.
  document.addEventListener("muster:acted", (event) => {
    table?.follower.ask();
    for (const id of event.detail.ids ?? []) refresh(id);
  });
  document.addEventListener("htmx:afterSettle", start);
  window.addEventListener("pagehide", () => { table?.end(); one?.follower.end(); table = one = null; });
  window.addEventListener("pageshow", (event) => { if (event.persisted) start(); });
  start();
})();
