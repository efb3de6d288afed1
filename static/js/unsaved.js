// What somebody has typed and not sent: nothing takes it away unasked.
// For other scripts: window.muster.unsaved = { isIn(root), reloadWhenDone(text) }.
"use strict";

(() => {
  const SOON = 1_000;
  const typed = new WeakSet();
  let waiting = null;

  document.addEventListener("input", (event) => typed.add(event.target), true);
  // A form that stays when it was sent has nothing unsaved any more.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const form = detail.elt.closest?.("form");
    if (detail.successful && form) for (const field of form.elements) typed.delete(field);
  });

  const isChosenAnew = (select) => {
    const options = [...select.options];
    const first = select.multiple || options.some((each) => each.defaultSelected) ? null : options[0];
    return options.some((each) => each.selected !== (each.defaultSelected || each === first));
  };

  const isChanged = (field) => {
    if (!typed.has(field)) return false;
    if (field.matches("select")) return isChosenAnew(field);
    return field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  };

  // What a search or a filter has is in the address, or comes back with one key.
  const isSent = (field) => field.form && (field.form.getAttribute("method")?.toLowerCase() === "post" || field.form.hasAttribute("hx-post"));

  const isIn = (root) => [...root.querySelectorAll("input, textarea, select")].some((field) => isSent(field) && isChanged(field));

  const isBusy = () => {
    const field = document.activeElement;
    return !!document.querySelector("dialog:modal") || (field?.matches("input, textarea, select") && isChanged(field)) || isIn(document);
  };

  // Load the page anew, once nobody is at something that this would lose; `text` says why meanwhile.
  const reloadWhenDone = (text) => {
    if (waiting) return;
    if (!isBusy()) { window.location.reload(); return; }
    window.muster.toast(text, "notice");
    waiting = window.setInterval(() => { if (!isBusy()) window.location.reload(); }, SOON);
  };

  window.muster.unsaved = { isIn, reloadWhenDone };
})();
