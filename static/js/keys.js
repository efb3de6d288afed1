// Keys of pages with a table: ? shows them, / searches, n makes new, j and k go from row to row; Enter opens, as on any link.
// They are dead where one types, chooses from a menu or has a dialog open. Whoever switched them off has no dialog of keys.
"use strict";

(() => {
  const help = document.getElementById("keys");
  if (!help) return;

  const listLinks = () => [...document.querySelectorAll("main [data-key-rows] > tr")]
    .map((row) => row.querySelector("th a[href], a[href]")).filter(Boolean);
  const findRow = (element) => element?.closest?.("[data-key-rows] > tr");

  // The row that had the focus last. What takes a row away takes the focus with it, and says so to nobody.
  let place = null;
  document.addEventListener("focusin", ({ target }) => {
    const row = findRow(target);
    place = row && { id: row.id, number: listLinks().findIndex((link) => findRow(link) === row) };
  });

  const focusRow = (step) => {
    const links = listLinks();
    const focused = findRow(document.activeElement);
    const isLost = !focused && place && document.activeElement === document.body;
    const now = links.findIndex((link) => (isLost ? place.id && findRow(link).id === place.id : findRow(link) === focused));
    let next = now < 0 ? 0 : now + step;
    // Where the row has gone, the one after it stands in its place.
    if (now < 0 && isLost) next = place.number + Math.min(step, 0);
    links[Math.max(0, Math.min(links.length - 1, next))]?.focus();
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
    const isTaken = event.target.closest?.(takesKeys) && !event.target.matches("main [data-choose], main [data-all]");
    // Who clicks on the words of the drawer, or reads what has just been drawn anew there, has the focus nowhere.
    const isReading = document.querySelector("#drawer[open]") && !event.target.closest?.("main");
    if (!action || isTaken || isReading || document.querySelector("dialog:modal, :popover-open")) return;
    event.preventDefault();
    action();
  });
})();
