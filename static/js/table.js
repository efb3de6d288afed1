// The table of workloads: its filters and columns, choosing rows, and the clocks of what runs. What changes by itself is in live.js.
"use strict";

(() => {
  const here = () => new URLSearchParams(window.location.search);

  // Filters: empty ones stay out of the address; order and columns stay as they are.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.target.id !== "filters") return;
    const asked = event.detail.parameters;
    for (const name of ["sort", "column"]) {
      const now = here().getAll(name).join(",");
      if (now) asked[name] = now; else delete asked[name];
    }
    for (const name of [...new Set(Object.keys(asked))]) if (asked[name] === "") delete asked[name];
  });

  // Columns are in the address and remembered by the server's cookie.
  const columns = (form) => {
    const keys = [...form.querySelectorAll("input[type=checkbox]")];
    const query = here();
    query.delete("cols");
    query.set("column", keys.filter((each) => each.checked).map((each) => each.value).join(",") || "name");
    const url = `${window.location.pathname}?${query}`;
    window.history.replaceState(window.history.state, "", url);
    window.htmx.ajax("GET", url, { target: "#workloads", swap: "outerHTML" });
  };

  // What is saved as a view is the table as it is now.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-table-query]");
    if (link) link.href = link.dataset.dialog = `${link.dataset.tableQuery}${window.location.search}`;
  }, true);

  // Choosing rows.
  const boxes = () => [...document.querySelectorAll("#workloads [data-choose]")];
  const chosen = () => {
    const all = boxes();
    const ticked = all.filter((each) => each.checked);
    const count = ticked.length;
    const told = document.querySelector("#workloads [data-chosen]");
    if (told) told.textContent = count ? `${count} chosen` : "";
    for (const button of document.querySelectorAll("#workloads [data-bulk]")) button.disabled = !count;
    const asks = document.querySelector("#workloads [data-bulk][data-confirm]");
    if (asks && count) {
      const what = count === 1 ? document.getElementById(`name-${ticked[0].value}`).textContent : `${count} workloads`;
      asks.dataset.confirmTitle = `Delete ${what}?`;
    }
    const every = document.querySelector("#workloads [data-all]");
    if (!every) return;
    every.checked = count > 0 && count === all.length;
    every.indeterminate = count > 0 && count < all.length;
  };

  document.addEventListener("change", (event) => {
    const at = event.target;
    if (at.matches("[data-all]")) for (const each of boxes()) each.checked = at.checked;
    if (at.matches("[data-all], [data-choose]")) chosen();
    if (at.closest("#columns")) columns(at.closest("#columns"));
  });
  document.addEventListener("muster:rows", chosen);
  document.addEventListener("muster:acted", () => {
    for (const each of boxes()) each.checked = false;
    chosen();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-dismiss-results]")) event.target.closest("[data-results]").remove();
    const button = event.target.closest("[aria-disabled=true]:not([href])");
    if (button) event.preventDefault();
  });

  // Clocks: how long something has run, counted on here.
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const words = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < MINUTE) return `${whole} s`;
    if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${whole % MINUTE} s`;
    if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${Math.floor((whole % HOUR) / MINUTE)} min`;
    return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
  };
  const clocks = () => {
    for (const each of document.querySelectorAll("[data-since]")) {
      const since = Date.parse(each.dataset.since);
      if (Number.isNaN(since)) continue;
      const now = words(Number(each.dataset.before || 0) + (Date.now() - since) / 1000);
      if (each.textContent !== now) each.textContent = now;
    }
  };

  const settle = () => { chosen(); clocks(); };
  document.addEventListener("htmx:afterSettle", settle);
  window.setInterval(() => { if (!document.hidden) clocks(); }, 1000);
  settle();
})();
