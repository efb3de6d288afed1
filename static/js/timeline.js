// The Timeline tab: what the server drew in percent of its width is zoomed, dragged, named where one points, and listed as a table.
// Each shape has its moments in data-b and data-e, as seconds, and its words in aria-label.
(() => {
  "use strict";

  const LEAST_SECONDS = 2;
  const STEP = 1.6;
  const MOST_ROWS = 1000;
  const TICK_PIXELS = 110;
  const LABEL_MARGIN = 5;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];
  const SVG = "http://www.w3.org/2000/svg";
  // Where a reader was in a workload's picture, for when it comes anew.
  const kept = new Map();
  const pictures = new Map();

  const make = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const draw = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const exact = (seconds) => new Date(seconds * 1000).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const lasted = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    const parts = [[Math.floor(whole / 86400), "d"], [Math.floor(whole / 3600) % 24, "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
    const first = parts.findIndex(([count]) => count);
    return first < 0 ? "0 s" : parts.slice(first, first + 2).filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ");
  };
  const nameTick = (seconds, step) => {
    const moment = new Date(seconds * 1000);
    const isMidnight = !moment.getHours() && !moment.getMinutes() && !moment.getSeconds();
    if (step >= 86400 || (isMidnight && step >= 60)) return moment.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return moment.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) });
  };

  class Picture {
    constructor(place) {
      this.place = place;
      this.find = (name) => place.querySelector(`[data-timeline-${name}]`);
      this.box = this.find("picture");
      this.buttons = place.parentElement.querySelector("[data-timeline-buttons]");
      this.first = Number(place.dataset.begin);
      this.last = Number(place.dataset.end);
      this.lanes = [...place.querySelectorAll("[data-timeline-lane]")];
      this.shapes = this.lanes.map((lane) => [...lane.querySelectorAll(".tl-shape")].map((element) => this.read(element)).sort((one, other) => one.begin - other.begin));
      for (const part of [this.buttons, this.find("help"), this.find("table")]) part.hidden = false;
      this.buttons.addEventListener("click", (event) => this.press(event));
      this.box.addEventListener("pointermove", (event) => this.point(event));
      this.box.addEventListener("pointerleave", () => this.unpoint());
      this.box.addEventListener("pointerdown", (event) => this.grab(event));
      for (const name of ["pointerup", "pointercancel"]) this.box.addEventListener(name, () => this.release());
      this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.box.addEventListener("dblclick", (event) => { const shape = this.shapeOf(event.target); if (shape) this.zoomTo(shape); });
      this.box.addEventListener("keydown", (event) => this.key(event));
      this.box.addEventListener("focusin", (event) => { const shape = this.shapeOf(event.target); if (shape) { this.choose(shape); this.tell(shape); } });
      this.box.addEventListener("focusout", () => this.unpoint());
      this.find("table").addEventListener("toggle", () => this.tabulate());
      this.size = new ResizeObserver(() => this.apply());
      this.size.observe(this.box);
      this.find("zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
      const before = kept.get(place.dataset.timeline);
      [this.begin, this.end] = before?.span ?? [this.first, this.last];
      // What ended at the edge follows it.
      if (before?.span && before.span[1] >= before.last) this.end = this.last;
      this.choose(this.shapes.flat()[0]);
      this.apply();
      // It may have been opened again before this heard of it.
      this.tabulate();
    }

    read(element) {
      const begin = Number(element.dataset.b);
      const isMark = element.dataset.e === undefined;
      const end = isMark ? begin : Number(element.dataset.e);
      const words = element.getAttribute("aria-label");
      const isOpen = "open" in element.dataset;
      const times = isMark ? exact(begin) : `${exact(begin)} to ${isOpen ? "now" : exact(end)} (${lasted(end - begin)})`;
      element.setAttribute("aria-label", `${words} ${times}`);
      const parts = isMark ? [element] : [...element.children];
      const shape = { element, begin, end, isMark, words, times, parts, since: exact(begin), until: isMark ? "" : isOpen ? "now" : exact(end) };
      element.timelineShape = shape;
      return shape;
    }

    shapeOf(target) { return target.closest?.(".tl-shape")?.timelineShape; }

    // All at once, before anything is moved: a measurement after a change lays the page out again.
    measureLabels() {
      for (const shape of this.shapes.flat()) {
        if (shape.labelPixels || shape.isMark) continue;
        const text = shape.element.querySelector("text");
        if (text) shape.labelPixels = text.getComputedTextLength();
      }
    }

    // From moments to percent of the width, for all that is drawn.
    apply() {
      const length = this.end - this.begin;
      const percent = (at) => (100 * (at - this.begin)) / length;
      const pixels = this.lanes[0].clientWidth / 100;
      this.measureLabels();
      for (const shape of this.shapes.flat()) {
        const isOutside = shape.end < this.begin || shape.begin > this.end;
        shape.isOutside = isOutside;
        if (isOutside) { shape.element.setAttribute("display", "none"); continue; }
        shape.element.removeAttribute("display");
        if (shape.isMark) { shape.element.setAttribute("x", `${percent(shape.begin).toFixed(3)}%`); continue; }
        const x = Math.max(0, percent(shape.begin));
        const width = Math.max(0.12, Math.min(100, percent(shape.end)) - x);
        for (const part of shape.parts) {
          part.setAttribute("x", `${x.toFixed(3)}%`);
          part.setAttribute("width", `${width.toFixed(3)}%`);
          // A part of a word misleads; the whole is under the pointer and in aria-label.
          if (part.localName === "svg") part.setAttribute("visibility", width * pixels < shape.labelPixels + 2 * LABEL_MARGIN ? "hidden" : "visible");
        }
      }
      this.isZoomed = length < (this.last - this.first) * 0.9999;
      this.box.toggleAttribute("data-zoomed", this.isZoomed);
      kept.set(this.place.dataset.timeline, { span: this.isZoomed ? [this.begin, this.end] : null, last: this.last });
      this.axis();
    }

    axis() {
      const ticks = this.find("ticks");
      const width = ticks.clientWidth || 600;
      const length = this.end - this.begin;
      const most = Math.max(2, Math.floor(width / TICK_PIXELS));
      const step = STEPS.find((each) => length / each <= most) ?? STEPS[STEPS.length - 1] * Math.ceil(length / most / STEPS[STEPS.length - 1]);
      // Round in local time: midnight is where the reader's is, also after clocks were changed.
      const behind = (at) => new Date(at * 1000).getTimezoneOffset() * 60;
      let offset = behind(this.begin);
      let before = -Infinity;
      const texts = [], lines = [];
      for (let local = Math.ceil((this.begin - offset) / step) * step; local + offset <= this.end; local += step) {
        // Hours and less count on through a change of clocks.
        if (step > 3600) offset = behind(local + offset);
        const at = local + offset;
        // An hour that was left out has no moments of its own.
        if (at <= before || at > this.end) continue;
        before = at;
        const percent = (100 * (at - this.begin)) / length;
        const x = `${percent.toFixed(3)}%`;
        lines.push(draw("line", { x1: x, x2: x, y1: 0, y2: "100%" }));
        const pixels = (percent / 100) * width;
        const anchor = pixels < 30 ? "start" : pixels > width - 30 ? "end" : "middle";
        const text = draw("text", { x, y: 14, "text-anchor": anchor });
        text.textContent = nameTick(at, step);
        texts.push(text);
      }
      ticks.replaceChildren(...texts);
      this.find("grid").replaceChildren(...lines);
    }

    show(begin, end) {
      const whole = this.last - this.first;
      const length = Math.min(whole, Math.max(Math.min(LEAST_SECONDS, whole), end - begin));
      const middle = (begin + end) / 2;
      this.begin = Math.max(this.first, Math.min(this.last - length, middle - length / 2));
      this.end = this.begin + length;
      this.apply();
    }

    zoom(factor, at = (this.begin + this.end) / 2) {
      const length = (this.end - this.begin) / factor;
      const share = (at - this.begin) / (this.end - this.begin);
      const begin = at - share * length;
      this.show(begin, begin + length);
    }

    pan(share) {
      const by = (this.end - this.begin) * share;
      this.show(this.begin + by, this.end + by);
    }

    zoomTo(shape) {
      if (shape.isMark) { this.zoom(4, shape.begin); return; }
      const margin = Math.max(1, (shape.end - shape.begin) * 0.05);
      this.show(shape.begin - margin, shape.end + margin);
    }

    press(event) {
      const action = event.target.closest("[data-timeline-do]")?.dataset.timelineDo;
      if (action === "in") this.zoom(STEP);
      else if (action === "out") this.zoom(1 / STEP);
      else if (action === "all") this.show(this.first, this.last);
    }

    momentAt(clientX) {
      const box = this.lanes[0].getBoundingClientRect();
      const share = (clientX - box.left) / box.width;
      return share < 0 || share > 1 ? null : this.begin + share * (this.end - this.begin);
    }

    wheel(event) {
      const at = this.momentAt(event.clientX);
      if (at === null) return;
      // A plain wheel scrolls the page, which the picture may fill.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.25 : 0.8, at);
      } else if (this.isZoomed && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan(event.deltaX / 600);
      }
    }

    grab(event) {
      if (!this.isZoomed || event.button !== 0 || event.target.closest("a")) return;
      this.drag = { x: event.clientX, begin: this.begin, end: this.end };
    }

    release() {
      this.drag = null;
      delete this.box.dataset.dragged;
    }

    point(event) {
      if (this.drag && event.buttons) {
        const moved = this.drag.x - event.clientX;
        if (Math.abs(moved) > 3 || "dragged" in this.box.dataset) {
          if (!("dragged" in this.box.dataset)) this.box.setPointerCapture(event.pointerId);
          this.box.dataset.dragged = "";
          const by = (moved / this.lanes[0].getBoundingClientRect().width) * (this.drag.end - this.drag.begin);
          this.show(this.drag.begin + by, this.drag.end + by);
        }
      }
      const at = this.momentAt(event.clientX);
      const cursor = this.find("cursor");
      cursor.hidden = at === null;
      if (at === null) { this.unpoint(); return; }
      const box = this.box.getBoundingClientRect();
      cursor.style.left = `${event.clientX - box.left}px`;
      const shape = this.shapeOf(event.target);
      this.showTip(shape ? `${shape.words}\n${shape.times}` : exact(at), event.clientX - box.left, event.clientY - box.top);
    }

    unpoint() {
      this.find("cursor").hidden = true;
      this.find("tip").hidden = true;
    }

    tell(shape) {
      if (!shape.element.matches(":focus-visible")) return;
      const box = this.box.getBoundingClientRect();
      const lane = shape.element.ownerSVGElement.closest("[data-timeline-lane]").getBoundingClientRect();
      const share = (Math.max(this.begin, shape.begin) - this.begin) / (this.end - this.begin);
      this.showTip(`${shape.words}\n${shape.times}`, lane.left - box.left + share * lane.width, lane.bottom - box.top - 10);
    }

    showTip(words, x, y) {
      const tip = this.find("tip");
      tip.textContent = words;
      tip.hidden = false;
      const { clientWidth } = this.box;
      tip.style.left = `${Math.max(0, Math.min(clientWidth - tip.offsetWidth, x + 12))}px`;
      tip.style.top = `${y + 18}px`;
    }

    // One shape is in the order of tabs; arrows go on from it.
    choose(shape) {
      if (!shape) return;
      this.chosen?.element.setAttribute("tabindex", "-1");
      this.chosen = shape;
      shape.element.setAttribute("tabindex", "0");
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const shape = this.shapeOf(event.target);
      if (!shape) return;
      const middle = (Math.max(this.begin, shape.begin) + Math.min(this.end, shape.end)) / 2;
      const actions = {
        "+": () => this.zoom(STEP, middle),
        "=": () => this.zoom(STEP, middle),
        "-": () => this.zoom(1 / STEP, middle),
        0: () => this.show(this.first, this.last),
        Home: () => this.show(this.first, this.last),
        Enter: () => this.zoomTo(shape),
        ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this.step(shape, -1)),
        ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this.step(shape, 1)),
        ArrowUp: () => this.changeLane(shape, -1),
        ArrowDown: () => this.changeLane(shape, 1),
        Escape: () => this.unpoint(),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      event.stopPropagation();
      action();
      if (document.activeElement === shape.element) this.tell(shape);
    }

    step(shape, by) {
      const lane = this.shapes.find((each) => each.includes(shape));
      this.focus(lane[lane.indexOf(shape) + by]);
    }

    // The shape of the next lane that is nearest in time.
    changeLane(shape, by) {
      let number = this.shapes.findIndex((each) => each.includes(shape)) + by;
      while (this.shapes[number] && !this.shapes[number].length) number += by;
      const lane = this.shapes[number];
      if (!lane) return;
      const distance = (other) => Math.max(0, other.begin - shape.begin, shape.begin - other.end);
      this.focus(lane.reduce((best, each) => (distance(each) < distance(best) ? each : best)));
    }

    focus(shape) {
      if (!shape) return;
      if (shape.isOutside) {
        const half = (this.end - this.begin) / 2;
        this.show(shape.begin - half, shape.begin + half);
      }
      shape.element.focus();
    }

    // The same for who does not see the picture.
    tabulate() {
      const table = this.find("table");
      const box = table.querySelector(".mu-table-box");
      if (!table.open || box.firstChild) return;
      const made = make("table", "mu-table");
      const head = make("tr");
      for (const name of ["Lane", "What", "Since", "Until"]) { const cell = make("th", "", name); cell.scope = "col"; head.append(cell); }
      const top = make("thead");
      top.append(head);
      const body = make("tbody");
      this.shapes.forEach((shapes, number) => {
        for (const shape of shapes) {
          if (body.children.length >= MOST_ROWS) return;
          const row = make("tr");
          const lane = make("th", "", this.lanes[number].getAttribute("aria-label"));
          lane.scope = "row";
          row.append(lane, ...[shape.words, shape.since, shape.until].map((text) => make("td", "", text)));
          body.append(row);
        }
      });
      made.append(top, body);
      box.replaceChildren(made);
    }

    remove() { this.size.disconnect(); }
  }

  const start = () => {
    for (const [place, picture] of pictures) {
      if (!place.isConnected) { picture.remove(); pictures.delete(place); }
    }
    for (const place of document.querySelectorAll("[data-timeline]")) {
      if (!pictures.has(place)) pictures.set(place, new Picture(place));
    }
  };

  // What had the focus has it again when the picture comes anew.
  let focused = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const shape = document.activeElement?.timelineShape;
    focused = shape && event.detail.target.contains(shape.element) ? shape : null;
  });
  document.addEventListener("htmx:afterSettle", () => {
    start();
    const before = focused;
    focused = null;
    if (!before) return;
    for (const picture of pictures.values()) {
      const same = picture.shapes.flat().find((each) => each.begin === before.begin && each.isMark === before.isMark && each.words === before.words)
        ?? picture.shapes.flat().find((each) => each.begin === before.begin && each.isMark === before.isMark);
      same?.element.focus({ preventScroll: true });
    }
  });
  start();
})();
