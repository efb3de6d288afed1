// Charts of what projects held over time: an element with data-chart is filled from that address. Colours come from charts.css.
(() => {
  "use strict";

  const HEIGHT = 260;
  const MOST_ROWS = 60;
  const COLOURS = 8;
  const charts = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-GB", { maximumFractionDigits: 3 }));
  const make = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const day = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const clock = (seconds, wide) => new Date(seconds * 1000).toLocaleString("en-GB", wide ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } : { hour: "2-digit", minute: "2-digit" });

  // Each area goes down to nothing and covers the one below it, so the sum of all comes first.
  const stacked = (lines, count) => {
    const sums = [];
    const running = new Array(count).fill(0);
    for (const line of lines) {
      sums.push(line.points.map((point, at) => {
        if (point === null) return null;
        running[at] += point;
        return running[at];
      }));
    }
    return sums;
  };

  class Chart {
    constructor(place) {
      this.place = place;
      this.card = place.closest("[data-chart-card]") ?? place;
      this.range = place.dataset.range;
      this.size = new ResizeObserver(() => this.fit());
      this.size.observe(place);
      this.card.addEventListener("click", (event) => this.choose(event));
      this.load();
      this.timer = window.setInterval(() => { if (!document.hidden && this.place.isConnected) this.load(); }, 60000);
    }

    choose(event) {
      const link = event.target.closest("[data-chart-range]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.range = link.dataset.chartRange;
      for (const each of this.card.querySelectorAll("[data-chart-range]")) {
        if (each === link) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
      }
      const csv = this.card.querySelector("[data-chart-csv]");
      if (csv) csv.href = `${this.place.dataset.chart}?range=${this.range}&format=csv`;
      window.history.replaceState(window.history.state, "", link.href);
      this.load();
    }

    async load() {
      const asked = this.range;
      try {
        const answer = await fetch(`${this.place.dataset.chart}?range=${asked}`, { headers: { Accept: "application/json" } });
        if (!answer.ok || !answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(String(answer.status));
        const data = await answer.json();
        if (asked === this.range) this.show(data);
      } catch {
        if (!this.data) this.tell("The figures cannot be had now. Load the page again in a moment.");
      }
    }

    tell(text) {
      this.plot?.destroy();
      this.plot = null;
      this.place.replaceChildren(make("p", "ch-nothing", text));
    }

    show(data) {
      this.data = data;
      this.lines = data.lines.map((line, at) => ({ ...line, ink: line.project === null ? "--ch-rest" : `--ch-${(at % COLOURS) + 1}` }));
      const known = data.lines.some((line) => line.points.some((point) => point !== null)) || data.running.some((point) => point !== null);
      this.legend();
      this.table();
      if (!known) return this.tell("Nothing has been written down for this time yet. A point is added every minute.");
      this.draw();
    }

    draw() {
      const sums = stacked(this.lines, this.data.at.length);
      const surface = colour("--mu-surface");
      const one = this.lines.length === 1;
      // A line needs two points; one that stands alone is drawn as a dot.
      const points = { show: this.data.running.filter((point) => point !== null).length === 1 };
      const areas = this.lines.map((line, at) => {
        const ink = colour(line.ink);
        return { at, label: line.name, fill: one ? `${ink}40` : ink, stroke: one ? ink : surface, width: one ? 2 : 1, points };
      }).reverse();
      const more = [];
      const data = [this.data.at, ...areas.map((area) => sums[area.at])];
      if (this.data.quota.some((point) => point !== null)) {
        data.push(this.data.quota);
        more.push({ label: "Quota", stroke: colour("--mu-ink"), width: 1.5, dash: [6, 4], points });
      }
      if (this.data.used.some((point) => point !== null)) {
        data.push(this.data.used);
        more.push({ label: "In use", stroke: colour("--ch-used"), width: 2, points });
      }
      if (this.place.dataset.idle !== undefined && this.data.idle.some((point) => point)) {
        data.push(this.data.idle);
        more.push({ label: "Idle", stroke: colour("--ch-idle"), width: 2, points });
      }
      const axis = { stroke: colour("--mu-quiet"), grid: { stroke: colour("--mu-line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
      this.plot?.destroy();
      this.place.replaceChildren();
      this.tip = make("div", "ch-tip");
      this.tip.hidden = true;
      this.plot = new window.uPlot({
        width: Math.max(200, this.place.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
        axes: [{ ...axis, values: (_, splits, __, ___, step) => splits.map((at) => (step >= 86400 ? day(at) : clock(at, false))), space: 80, size: 34 }, { ...axis, size: 44, values: (_, splits) => splits.map(number) }],
        series: [{}, ...areas.map(({ at, ...series }) => series), ...more],
        hooks: { setCursor: [(plot) => this.point(plot)] },
      }, data, this.place);
      this.plot.root.setAttribute("aria-hidden", "true");
      this.plot.over.append(this.tip);
    }

    point(plot) {
      const at = plot.cursor.idx;
      if (at === null || at === undefined || plot.cursor.left < 0) { this.tip.hidden = true; return; }
      const rows = this.rows(at).map(([name, value, ink, shape]) => {
        const row = make("div", "ch-tip__row");
        row.append(swatch(ink, shape), make("span", "ch-tip__name", name), make("span", "ch-tip__value", number(value)));
        return row;
      });
      this.tip.replaceChildren(make("div", "ch-tip__at", clock(this.data.at[at], true)), ...rows);
      this.tip.hidden = false;
      const left = plot.cursor.left + 16 + this.tip.offsetWidth > plot.over.clientWidth ? plot.cursor.left - 16 - this.tip.offsetWidth : plot.cursor.left + 16;
      this.tip.style.transform = `translate(${Math.max(0, left)}px, 8px)`;
    }

    rows(at) {
      const rows = this.lines.map((line) => [line.name, line.points[at], line.ink]);
      if (this.data.quota[at] !== null) rows.push(["Quota", this.data.quota[at], "--mu-ink", "dashed"]);
      if (this.data.used[at] !== null) rows.push(["In use", this.data.used[at], "--ch-used", "line"]);
      if (this.data.idle[at] !== null) rows.push(["Idle", this.data.idle[at], "--ch-idle", "line"]);
      rows.push(["Running workloads", this.data.running[at], ""], ["Waiting workloads", this.data.waiting[at], ""]);
      return rows;
    }

    legend() {
      const place = this.card.querySelector("[data-chart-legend]");
      if (!place) return;
      const shown = this.lines.map((line) => [line.name, line.ink]);
      if (this.data.quota.some((point) => point !== null)) shown.push(["Quota", "--mu-ink", "dashed"]);
      if (this.data.used.some((point) => point !== null)) shown.push(["In use", "--ch-used", "line"]);
      if (this.place.dataset.idle !== undefined && this.data.idle.some((point) => point)) shown.push(["Idle", "--ch-idle", "line"]);
      place.replaceChildren(...shown.map(([name, ink, shape]) => {
        const item = make("li", "ch-legend__item");
        item.append(swatch(ink, shape), document.createTextNode(name));
        return item;
      }));
    }

    // The same numbers for who does not see the picture, the newest first.
    table() {
      const place = this.card.querySelector("[data-chart-table]");
      if (!place) return;
      const head = make("tr");
      const names = ["Time", ...this.lines.map((line) => line.name), "Quota", "In use", "Idle", "Running", "Waiting"];
      for (const name of names) { const cell = make("th", "", name); cell.scope = "col"; head.append(cell); }
      const columns = [...this.lines.map((line) => line.points), this.data.quota, this.data.used, this.data.idle, this.data.running, this.data.waiting];
      const every = Math.max(1, Math.ceil(this.data.at.length / MOST_ROWS));
      const body = make("tbody");
      for (let at = this.data.at.length - 1; at >= 0; at -= every) {
        const row = make("tr");
        const when = make("th", "", clock(this.data.at[at], true));
        when.scope = "row";
        row.append(when, ...columns.map((column) => make("td", "mu-number", number(column[at]))));
        body.append(row);
      }
      const table = make("table", "mu-table");
      const top = make("thead");
      top.append(head);
      table.append(top, body);
      place.replaceChildren(table);
    }

    fit() {
      const width = this.place.clientWidth;
      if (this.plot && width && Math.abs(this.plot.width - width) > 1) this.plot.setSize({ width: Math.max(200, width), height: HEIGHT });
    }

    end() {
      window.clearInterval(this.timer);
      this.size.disconnect();
      this.plot?.destroy();
    }
  }

  // A square for an area, a line for a line.
  const swatch = (ink, shape = "area") => {
    const made = make("span", `ch-swatch ch-swatch--${ink ? shape : "none"}`);
    made.setAttribute("aria-hidden", "true");
    if (ink) made.style.color = `var(${ink})`;
    return made;
  };

  const start = () => {
    for (const [place, chart] of charts) {
      if (!place.isConnected) { chart.end(); charts.delete(place); }
    }
    for (const place of document.querySelectorAll("[data-chart]")) {
      if (!charts.has(place)) charts.set(place, new Chart(place));
    }
  };

  new MutationObserver(() => { for (const chart of charts.values()) if (chart.plot) chart.draw(); })
    .observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
  document.addEventListener("htmx:afterSettle", start);
  start();
})();
