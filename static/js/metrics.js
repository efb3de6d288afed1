// The Metrics tab: fetches figures as bytes (workloads/metrics/packing.py and frames.py say their form), draws a line for each metric
// and a strip with a row for each rank. Drag zooms all charts, the crosshair is in all of them, Reset zoom goes back.
(() => {
  "use strict";

  const HEIGHT = 180;
  const MOST_ROWS = 60;
  const EVERY = 15000;
  const COARSE = 4;
  const tabs = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const make = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const clock = (seconds, wide) => new Date(seconds * 1000).toLocaleString("en-GB", wide ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" } : { hour: "2-digit", minute: "2-digit" });
  const day = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });

  const PREFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  // Commas between thousands, as in every text of the server.
  const grouped = (value) => value.toLocaleString("en-GB", { maximumSignificantDigits: 3 });
  const write = (value, unit) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (unit.startsWith("bytes")) {
      let at = 0;
      while (Math.abs(value) >= 1024 && at < PREFIXES.length - 1) { value /= 1024; at += 1; }
      return `${grouped(value)} ${PREFIXES[at]}B${unit.slice(5)}`;
    }
    return `${grouped(value)}${unit === "%" ? " %" : unit ? ` ${unit}` : ""}`;
  };

  // Bytes are read best at multiples of 1024, so the axis steps by powers of two.
  const BYTE_STEPS = Array.from({ length: 58 }, (_, power) => 2 ** power);

  // One value of many: the middle one, without those that are missing.
  const median = (sorted) => {
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };

  const halves = new DataView(new ArrayBuffer(4));
  const readHalf = (view, at) => { halves.setUint32(0, view.getUint16(at, true) << 16); return halves.getFloat32(0); };

  // Bytes to { head, frames: [{ at, ids, values: Map(code -> Float32Array) }] }, in the order of time.
  const parse = (buffer) => {
    const view = new DataView(buffer);
    const length = view.getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const frames = [];
    const newest = new Map();
    let at = 4 + length;
    while (at < view.byteLength) {
      const source = Number(view.getBigUint64(at, true));
      const start = view.getUint32(at + 8, true);
      const end = at + 16 + view.getUint32(at + 12, true);
      at += 16;
      while (at < end) {
        const seconds = start + view.getUint16(at, true);
        const count = view.getUint16(at + 2, true);
        const mask = view.getUint32(at + 4, true);
        const first = Number(view.getBigUint64(at + 8, true));
        at += 16;
        const ids = [source || first];
        for (let number = 1; number < count; number += 1, at += 4) ids.push(first + view.getUint32(at, true));
        const values = new Map();
        for (let code = 0; code < 32; code += 1) {
          if (!(mask & (1 << code))) continue;
          const column = new Float32Array(count);
          for (let number = 0; number < count; number += 1, at += 2) column[number] = readHalf(view, at);
          values.set(code, column);
        }
        // Where resolutions meet, a row may reach into what came before.
        if (seconds >= head.since && seconds < head.until && seconds > (newest.get(source) ?? 0)) {
          newest.set(source, seconds);
          frames.push({ at: seconds, ids, values });
        }
      }
      at = end;
    }
    return { head, frames: newest.size > 1 ? join(frames) : frames };
  };

  // Frames of several nodes to one for each moment, in the order of time.
  const join = (frames) => {
    const moments = new Map();
    for (const frame of frames) {
      if (!moments.has(frame.at)) moments.set(frame.at, []);
      moments.get(frame.at).push(frame);
    }
    return [...moments.keys()].sort((one, other) => one - other).map((at) => {
      const parts = moments.get(at);
      const ids = parts.flatMap((part) => part.ids);
      const values = new Map();
      let before = 0;
      for (const part of parts) {
        for (const [code, column] of part.values) {
          if (!values.has(code)) values.set(code, new Float32Array(ids.length).fill(NaN));
          values.get(code).set(column, before);
        }
        before += part.ids.length;
      }
      return { at, ids, values };
    });
  };

  // What of so many pods is left out.
  const describeLimits = (head, noun) => {
    const further = head.hidden < 0 ? `Further ${noun}s` : `${head.hidden} more ${noun}s`;
    const hidden = head.hidden ? `${further} are not shown. ` : "";
    const minutes = Number((head.spacing / 60).toPrecision(2));
    return head.spacing ? `${hidden}Of so many ${noun}s one figure in ${minutes} min is shown; zoom to see more.` : hidden;
  };

  const loaded = {};
  const loadUplot = (place) => {
    loaded.uplot ??= new Promise((resolve, reject) => {
      if (window.uPlot) { resolve(); return; }
      const styles = make("link");
      styles.rel = "stylesheet";
      styles.href = place.dataset.uplotStyles;
      const script = make("script");
      script.src = place.dataset.uplot;
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(styles, script);
    });
    return loaded.uplot;
  };

  class Tab {
    constructor(place) {
      this.place = place;
      this.range = place.dataset.range;
      this.noun = place.dataset.noun;
      this.pod = Number(place.dataset.pod) || null;
      this.zoom = null;
      this.charts = [];
      this.find = (name) => place.querySelector(`[data-metrics-${name}]`);
      place.addEventListener("click", (event) => this.choose(event));
      this.find("pod").addEventListener("change", (event) => { this.pod = Number(event.target.value) || null; this.draw(); });
      this.find("metric").addEventListener("change", () => this.paint());
      this.canvas = place.querySelector("canvas");
      this.canvas.addEventListener("pointermove", (event) => this.pointStrip(event));
      this.canvas.addEventListener("pointerleave", () => this.move(null));
      this.canvas.addEventListener("click", (event) => this.chooseRank(event));
      this.size = new ResizeObserver(() => this.fit());
      this.size.observe(place);
      this.timer = window.setInterval(() => this.refresh(), EVERY);
      this.load();
    }

    choose(event) {
      if (event.target.closest("[data-metrics-reset]")) { this.zoom = null; this.load(); return; }
      const link = event.target.closest("[data-metrics-range]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.range = link.dataset.metricsRange;
      this.zoom = null;
      for (const each of this.place.querySelectorAll("[data-metrics-range]")) {
        if (each === link) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
      }
      if (!this.place.closest(".wl-details--pane")) window.history.replaceState(window.history.state, "", link.href);
      this.load();
    }

    get query() { return this.zoom ? `since=${this.zoom[0]}&until=${this.zoom[1]}` : `range=${this.range}`; }

    // What goes on is asked for again: of figures as they were measured only the new ones, of coarser ones, which change
    // at their end, all, but not as often.
    refresh() {
      if (document.hidden || this.zoom || !this.place.isConnected || this.place.dataset.ended !== undefined) return;
      // A slow answer is waited for.
      if (this.isLoading) return;
      const last = this.frames?.[this.frames.length - 1]?.at;
      if (this.head?.isRaw && last && this.loaded === this.query) this.load(last);
      else if (!this.head || Date.now() - this.loadedAt >= (this.head.isRaw ? 1 : COARSE) * EVERY - 1000) this.load();
    }

    async load(after) {
      const asked = this.query;
      // Whatever was asked for before comes too late.
      this.turn = (this.turn ?? 0) + 1;
      const { turn } = this;
      this.isLoading = true;
      const address = `${this.place.dataset.metrics}?${asked}`;
      this.find("csv").href = `${address}&format=csv`;
      try {
        const [answer] = await Promise.all([fetch(after ? `${address}&after=${after}` : address), loadUplot(this.place)]);
        if (!answer.ok) throw new Error(String(answer.status));
        const buffer = await answer.arrayBuffer();
        if (turn !== this.turn || !this.place.isConnected) return;
        const { head, frames } = parse(buffer);
        const kept = after ? this.frames.filter((frame) => frame.at >= head.since && frame.at <= after) : [];
        this.loaded = asked;
        this.loadedAt = Date.now();
        this.take({ head, frames: after ? [...kept, ...frames.filter((frame) => frame.at > after)] : frames });
      } catch {
        if (turn === this.turn) this.find("age").textContent = "The figures cannot be had now. They are asked for again in a moment.";
      } finally {
        if (turn === this.turn) this.isLoading = false;
      }
    }

    take({ head, frames }) {
      this.head = head;
      this.frames = frames;
      this.find("reset").hidden = !this.zoom;
      this.find("note").textContent = describeLimits(head, this.noun);
      const newest = frames.length ? frames[frames.length - 1].at : null;
      const age = newest === null ? 0 : Math.max(0, head.now - newest);
      // What says so at length stands below.
      if (newest === null) this.find("age").textContent = this.find("none") ? "" : "Nothing was measured in this time.";
      else this.find("age").textContent = this.place.dataset.ended === undefined && age < 600 && !this.zoom && !head.spacing ? `Measured ${age} s ago` : `Measured until ${clock(newest, true)}`;
      const seen = new Set(frames.flatMap((frame) => frame.ids));
      this.pods = head.pods.filter((pod) => seen.has(pod.id));
      this.places = new Map(this.pods.map((pod, at) => [pod.id, at]));
      this.spread();
      this.offerPods();
      this.draw();
    }

    // The figures by metric: at[], and for each pod a value at each of them; a hole in time is a moment without figures.
    spread() {
      const gap = this.findGap();
      const at = [];
      const rows = [];
      for (const frame of this.frames) {
        if (at.length && frame.at - at[at.length - 1] > gap) { at.push(at[at.length - 1] + 1); rows.push(null); }
        at.push(frame.at);
        rows.push(frame);
      }
      this.at = at;
      this.metrics = [];
      for (const metric of this.head.metrics) {
        if (!metric.isShown) continue;
        const grid = new Float32Array(at.length * this.pods.length).fill(NaN);
        let known = 0;
        let hasAny = false;
        rows.forEach((frame, time) => {
          const column = frame?.values.get(metric.code);
          if (!column) return;
          frame.ids.forEach((id, number) => {
            const place = this.places.get(id);
            if (place === undefined || Number.isNaN(column[number])) return;
            grid[place * at.length + time] = column[number];
            known += 1;
            hasAny ||= column[number] > 0;
          });
        });
        // That devices have no faults is usual: a chart of zeros would only be in the way.
        if (metric.isFault ? hasAny : known) this.metrics.push({ ...metric, grid, ...this.summarise(grid) });
      }
    }

    findGap() {
      const steps = [];
      for (let time = 1; time < this.frames.length; time += 1) steps.push(this.frames[time].at - this.frames[time - 1].at);
      if (!steps.length) return Infinity;
      steps.sort((one, other) => one - other);
      return 2.5 * Math.max(15, steps[Math.floor(steps.length * 0.9)]);
    }

    summarise(grid) {
      const count = this.at.length;
      const least = new Array(count).fill(null);
      const middle = new Array(count).fill(null);
      const most = new Array(count).fill(null);
      const column = new Float32Array(this.pods.length);
      for (let time = 0; time < count; time += 1) {
        let known = 0;
        for (let pod = 0; pod < this.pods.length; pod += 1) {
          const value = grid[pod * count + time];
          if (!Number.isNaN(value)) { column[known] = value; known += 1; }
        }
        if (!known) continue;
        const sorted = column.subarray(0, known).sort();
        least[time] = sorted[0];
        middle[time] = median(sorted);
        most[time] = sorted[known - 1];
      }
      return { least, middle, most };
    }

    offerPods() {
      const choice = this.find("pod");
      const wanted = this.pods.map((pod) => [String(pod.id), this.namePod(pod)]);
      const key = wanted.map(([id]) => id).join();
      choice.closest("label").hidden = wanted.length < 2;
      if (choice.dataset.key !== key) {
        choice.dataset.key = key;
        choice.replaceChildren(new Option(`All ${this.noun}s`, ""), ...wanted.map(([id, name]) => new Option(name, id)));
      }
      choice.value = this.places.has(this.pod) ? String(this.pod) : "";
      const metric = this.find("metric");
      const names = this.metrics.map((each) => each.name);
      if (metric.dataset.key !== names.join()) {
        const before = metric.value;
        metric.dataset.key = names.join();
        metric.replaceChildren(...this.metrics.map((each) => new Option(each.title, each.name)));
        if (names.includes(before)) metric.value = before;
      }
    }

    namePod(pod) {
      const attempt = this.pods.some((other) => other.attempt !== pod.attempt) ? `, attempt ${pod.attempt}` : "";
      return pod.rank === null ? `${pod.name}${attempt}` : `Rank ${pod.rank}: ${pod.name}${attempt}`;
    }

    draw() {
      const box = this.find("charts");
      this.charts.forEach((chart) => chart.destroy());
      this.charts = [];
      this.find("none")?.toggleAttribute("hidden", this.metrics.length > 0);
      const cards = this.metrics.map((metric) => {
        const card = make("section", "mx-card");
        card.id = `metric-${metric.name}`;
        const head = make("h2", "mx-title", metric.title);
        const plot = make("div", "mx-plot");
        card.append(head, plot);
        head.append(make("span", "mx-title__now mu-quiet", this.describeNewest(metric)));
        return [card, plot, metric];
      });
      box.replaceChildren(...cards.map(([card]) => card));
      for (const [, plot, metric] of cards) this.charts.push(this.drawChart(plot, metric));
      this.paint();
      this.tabulate();
      this.lead();
    }

    // Other pages lead to one chart, as "#metric-cpu": it comes into view once, when it is drawn first.
    lead() {
      const wanted = window.location.hash.slice(1);
      const card = wanted.startsWith("metric-") && document.getElementById(wanted);
      if (!card) return;
      card.classList.add("mx-card--wanted");
      if (this.hasLed) return;
      this.hasLed = true;
      card.scrollIntoView({ block: "center" });
      const name = wanted.slice("metric-".length);
      const metric = this.find("metric");
      if (metric.value !== name && [...metric.options].some((each) => each.value === name)) { metric.value = name; this.paint(); }
    }

    describeNewest(metric) {
      let time = this.at.length - 1;
      while (time >= 0 && metric.middle[time] === null) time -= 1;
      if (time < 0) return "";
      const middle = write(metric.middle[time], metric.unit);
      if (this.pods.length < 2) return middle;
      return `${middle} (${write(metric.least[time], metric.unit)} to ${write(metric.most[time], metric.unit)})`;
    }

    drawChart(place, metric) {
      const ink = colour("--ch-1");
      const data = [this.at, metric.least, metric.most, metric.middle];
      const series = [
        {},
        { label: "Least", stroke: `${ink}66`, width: this.pods.length > 1 ? 1 : 0, points: { show: false } },
        { label: "Most", stroke: `${ink}66`, width: this.pods.length > 1 ? 1 : 0, points: { show: false } },
        { label: this.pods.length > 1 ? "Median" : metric.title, stroke: ink, width: 2, points: { show: this.frames.length < 2 } },
      ];
      const chosen = this.places.get(this.pod);
      if (chosen !== undefined && this.pods.length > 1) {
        const count = this.at.length;
        data.push(Array.from(metric.grid.subarray(chosen * count, (chosen + 1) * count), (value) => (Number.isNaN(value) ? null : value)));
        series.push({ label: this.namePod(this.pods[chosen]), stroke: colour("--ch-3"), width: 2, points: { show: false } });
      }
      const axis = { stroke: colour("--mu-quiet"), grid: { stroke: colour("--mu-line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
      const percent = metric.unit === "%";
      const plot = new window.uPlot({
        width: Math.max(200, place.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, sync: { key: "mx", setSeries: false } },
        scales: {
          x: { range: () => [this.head.since, this.head.until] },
          y: { range: (_, __, high) => [0, percent ? 100 : high > 0 ? high * 1.08 : 1] },
        },
        axes: [{ ...axis, values: (_, splits, __, ___, step) => splits.map((at) => (step >= 86400 ? day(at) : clock(at, false))), space: 80, size: 30 }, { ...axis, size: 76, ...(metric.unit.startsWith("bytes") ? { incrs: BYTE_STEPS } : {}), values: (_, splits) => splits.map((value) => write(value, metric.unit)) }],
        series,
        bands: this.pods.length > 1 ? [{ series: [2, 1], fill: `${ink}22` }] : [],
        hooks: {
          draw: [(drawn) => this.drawMarks(drawn)],
          setCursor: [(drawn) => this.move(drawn.cursor.left >= 0 ? drawn.posToVal(drawn.cursor.left, "x") : null, metric, drawn)],
          setSelect: [(drawn) => this.select(drawn)],
        },
      }, data, place);
      plot.root.setAttribute("aria-hidden", "true");
      plot.tip = make("div", "ch-tip");
      plot.tip.hidden = true;
      plot.over.append(plot.tip);
      return plot;
    }

    // Restarts and changes of status, as lines through every chart.
    drawMarks(plot) {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.lineWidth = window.devicePixelRatio;
      ctx.setLineDash([4 * window.devicePixelRatio, 3 * window.devicePixelRatio]);
      for (const mark of this.head.marks) {
        const x = Math.round(plot.valToPos(mark.at, "x", true));
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.strokeStyle = colour(mark.isRestart ? "--ch-over" : "--mu-line-strong");
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    }

    select(plot) {
      const { left, width } = plot.select;
      if (width < 4) return;
      const since = Math.floor(plot.posToVal(left, "x"));
      const until = Math.ceil(plot.posToVal(left + width, "x"));
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      if (until - since >= 30) { this.zoom = [since, until]; this.load(); }
    }

    nearest(at) {
      let low = 0;
      let high = this.at.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.at[middle] < at) low = middle + 1; else high = middle;
      }
      return low > 0 && at - this.at[low - 1] < this.at[low] - at ? low - 1 : low;
    }

    // The crosshair: words in the chart that is pointed at, a line in the strip.
    move(at, metric, plot) {
      const line = this.place.querySelector(".mx-strip__line");
      line.hidden = at === null || !this.at.length;
      if (at !== null) line.style.left = `${(100 * (at - this.head.since)) / (this.head.until - this.head.since)}%`;
      if (!plot) return;
      const time = this.at.length ? this.nearest(at ?? 0) : null;
      if (at === null || time === null || metric.middle[time] === null) { plot.tip.hidden = true; return; }
      const rows = this.pods.length > 1
        ? [["Most", metric.most[time]], ["Median", metric.middle[time]], ["Least", metric.least[time]]]
        : [[metric.title, metric.middle[time]]];
      const chosen = this.places.get(this.pod);
      if (chosen !== undefined && this.pods.length > 1) rows.push([this.namePod(this.pods[chosen]), metric.grid[chosen * this.at.length + time]]);
      const near = this.head.marks.filter((mark) => Math.abs(plot.valToPos(mark.at, "x") - plot.cursor.left) < 6);
      plot.tip.replaceChildren(
        make("div", "ch-tip__at", clock(this.at[time], true)),
        ...rows.map(([name, value]) => {
          const row = make("div", "ch-tip__row");
          row.append(make("span", "ch-tip__name", name), make("span", "ch-tip__value", write(value, metric.unit)));
          return row;
        }),
        ...near.map((mark) => make("div", "ch-tip__row", `${clock(mark.at, false)} ${mark.title}`)),
      );
      plot.tip.hidden = false;
      const width = plot.tip.offsetWidth;
      const left = plot.cursor.left + 16 + width > plot.over.clientWidth ? plot.cursor.left - 16 - width : plot.cursor.left + 16;
      plot.tip.style.transform = `translate(${Math.max(0, left)}px, 8px)`;
    }

    get painted() { return this.metrics.find((metric) => metric.name === this.find("metric").value) ?? this.metrics[0]; }

    // The strip: a row for each pod, from light to dark; what is missing is the ground.
    paint() {
      const metric = this.painted;
      this.find("strip").hidden = !metric || this.pods.length < 2;
      if (!metric || this.pods.length < 2) return;
      const height = Math.max(2, Math.min(16, Math.floor(512 / this.pods.length))) || 1;
      const rows = this.pods.length;
      const width = Math.max(200, this.canvas.parentElement.clientWidth);
      const canvas = this.canvas;
      const rowHeight = rows > 256 ? 1 : height;
      canvas.width = width;
      canvas.height = rows * rowHeight;
      canvas.style.height = `${rows * rowHeight}px`;
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, rows * rowHeight);
      const most = metric.unit === "%" ? 100 : Math.max(...metric.most) || 1;
      const steps = this.shades();
      const count = this.at.length;
      const span = this.head.until - this.head.since;
      const gap = this.findGap();
      for (let x = 0; x < width; x += 1) {
        const at = this.head.since + (x * span) / width;
        const time = this.nearest(at);
        const isKnown = Math.abs(this.at[time] - at) <= Math.max(gap, span / width);
        for (let row = 0; row < rows; row += 1) {
          const value = isKnown ? metric.grid[row * count + time] : NaN;
          if (Number.isNaN(value)) continue;
          const shade = steps[Math.min(steps.length - 1, Math.round((value / most) * (steps.length - 1)))];
          for (let y = row * rowHeight; y < (row + 1) * rowHeight; y += 1) {
            image.data.set(shade, 4 * (y * width + x));
          }
        }
      }
      context.putImageData(image, 0, 0);
      this.find("scale").textContent = `0 to ${write(most, metric.unit)}`;
      this.find("scale").style.setProperty("--mx-low", `rgb(${steps[0].slice(0, 3).join(" ")})`);
      this.find("scale").style.setProperty("--mx-high", `rgb(${steps[steps.length - 1].slice(0, 3).join(" ")})`);
      if (!this.find("words").dataset.pointed) this.find("words").textContent = `${rows} ${this.noun}s${this.noun === "pod" ? " by rank" : ""}, the first above. Point at a row to read it; click to draw its line in every chart.`;
    }

    shades() {
      const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const gradient = probe.createLinearGradient(0, 0, 255, 0);
      gradient.addColorStop(0, colour("--mx-low") || "#eef");
      gradient.addColorStop(0.5, colour("--mx-middle") || "#88f");
      gradient.addColorStop(1, colour("--mx-high") || "#006");
      probe.canvas.width = 256;
      probe.canvas.height = 1;
      probe.fillStyle = gradient;
      probe.fillRect(0, 0, 256, 1);
      const { data } = probe.getImageData(0, 0, 256, 1);
      return Array.from({ length: 256 }, (_, step) => Array.from(data.subarray(4 * step, 4 * step + 4)));
    }

    rowAt(event) {
      const box = this.canvas.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * this.pods.length);
      const at = this.head.since + ((event.clientX - box.left) / box.width) * (this.head.until - this.head.since);
      return [this.pods[Math.max(0, Math.min(this.pods.length - 1, row))], at];
    }

    pointStrip(event) {
      const [pod, at] = this.rowAt(event);
      const metric = this.painted;
      const time = this.nearest(at);
      const value = metric.grid[this.places.get(pod.id) * this.at.length + time];
      const words = this.find("words");
      words.dataset.pointed = "";
      words.textContent = `${this.namePod(pod)}${pod.node ? ` on ${pod.node}` : ""}, ${clock(this.at[time], true)}: ${write(value, metric.unit)}`;
      this.move(at);
      for (const chart of this.charts) chart.setCursor({ left: chart.valToPos(at, "x"), top: 10 }, false);
    }

    chooseRank(event) {
      const [pod] = this.rowAt(event);
      this.pod = this.pod === pod.id ? null : pod.id;
      this.find("pod").value = this.pod === null ? "" : String(this.pod);
      this.draw();
    }

    // The same for who does not see the pictures, the newest first.
    tabulate() {
      const box = this.find("table");
      box.hidden = !this.metrics.length;
      const head = make("tr");
      const names = ["Time", ...this.metrics.flatMap((metric) => (this.pods.length > 1 ? [`${metric.title}, least`, "median", "most"] : [metric.title]))];
      names.forEach((name, at) => { const cell = make("th", at ? "mu-number" : "", name); cell.scope = "col"; head.append(cell); });
      const known = this.at.map((_, time) => time).filter((time) => this.metrics.some((metric) => metric.middle[time] !== null));
      const every = Math.max(1, Math.ceil(known.length / MOST_ROWS));
      const body = make("tbody");
      for (let number = known.length - 1; number >= 0; number -= every) {
        const time = known[number];
        const row = make("tr");
        const when = make("th", "", clock(this.at[time], true));
        when.scope = "row";
        const cells = this.metrics.flatMap((metric) => (this.pods.length > 1 ? [metric.least, metric.middle, metric.most] : [metric.middle]).map((line) => write(line[time], metric.unit)));
        row.append(when, ...cells.map((text) => make("td", "mu-number", text)));
        body.append(row);
      }
      const table = make("table", "mu-table");
      const top = make("thead");
      top.append(head);
      table.append(top, body);
      box.querySelector(".mu-table-box").replaceChildren(table);
    }

    fit() {
      for (const chart of this.charts) {
        const width = Math.max(200, chart.root.parentElement.clientWidth);
        if (Math.abs(chart.width - width) > 1) chart.setSize({ width, height: HEIGHT });
      }
      if (this.head && Math.abs(this.canvas.width - this.canvas.parentElement.clientWidth) > 1) this.paint();
    }

    end() {
      window.clearInterval(this.timer);
      this.size.disconnect();
      this.charts.forEach((chart) => chart.destroy());
    }
  }

  const start = () => {
    for (const [place, tab] of tabs) {
      if (!place.isConnected) { tab.end(); tabs.delete(place); }
    }
    for (const place of document.querySelectorAll("[data-metrics]")) {
      if (!tabs.has(place)) tabs.set(place, new Tab(place));
    }
  };

  new MutationObserver(() => { for (const tab of tabs.values()) if (tab.head) tab.draw(); })
    .observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
  document.addEventListener("htmx:afterSettle", start);
  start();
})();
