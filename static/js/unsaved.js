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
    if (detail.successful && form && !window.muster.isSignInPage(detail.xhr)) for (const field of form.elements) typed.delete(field);
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
  const isPosted = (form) => !!form && (form.getAttribute("method")?.toLowerCase() === "post" || form.hasAttribute("hx-post"));

  const isIn = (root) => [...root.querySelectorAll("input, textarea, select")].some((field) => isPosted(field.form) && isChanged(field));

  const isBusy = () => {
    const field = document.activeElement;
    // The drawer shows: what its buttons send is no form that somebody is at.
    const hasForm = [...document.querySelectorAll("dialog:modal:not(#drawer) form")].some(isPosted);
    return hasForm || (field?.matches("input, textarea, select") && isChanged(field)) || isIn(document);
  };

  // Load the page anew, once nobody is at something that this would lose; `text` says why meanwhile.
  // Whoever asked for something while it waits is told again.
  const reloadWhenDone = (text, { isAnswer = false } = {}) => {
    if (waiting && isAnswer) window.muster.toast(text, "notice");
    if (waiting) return;
    if (!isBusy()) { window.location.reload(); return; }
    window.muster.toast(text, "notice");
    waiting = window.setInterval(() => {
      if (isBusy()) return;
      // Once: each further time would break off the page that is on its way.
      window.clearInterval(waiting);
      window.location.reload();
    }, SOON);
  };

  window.muster.unsaved = { isIn, reloadWhenDone };
})();
