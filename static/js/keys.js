// Keys of pages with a table: ? shows them, / searches, n makes new, j and k go from row to row; Enter opens, as on any link.
// They are dead where one types, chooses from a menu or has a dialog open. Whoever switched them off has no dialog of keys.
"use strict";

(() => {
  const help = document.getElementById("keys");
  if (!help) return;

  const focusRow = (step) => {
    const rows = [...document.querySelectorAll("main [data-key-rows] > tr")];
    const links = rows.map((row) => row.querySelector("th a[href], a[href]")).filter(Boolean);
    const row = document.activeElement?.closest("[data-key-rows] > tr");
    const now = links.findIndex((link) => link.closest("tr") === row);
    const next = now < 0 ? links[0] : links[Math.max(0, Math.min(links.length - 1, now + step))];
    next?.focus();
  };

  const ACTIONS = {
    "?": () => help.showModal(),
    "/": () => document.querySelector("main [data-key=search]")?.focus(),
    n: () => document.querySelector("main [data-key=new]")?.click(),
    j: () => focusRow(1),
    k: () => focusRow(-1),
  };

  const takesKeys = "input, textarea, select, [contenteditable], [role=menu], dialog, details[open]";
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = ACTIONS[event.key];
    const isTaken = event.target.closest?.(takesKeys) && !event.target.matches("[data-choose], [data-all]");
    if (!action || isTaken || document.querySelector("dialog:modal, :popover-open")) return;
    event.preventDefault();
    action();
  });
})();
