// The page's one dialog, its side drawer, and the question before what cannot be undone.
// data-dialog="/url" and data-drawer="/url" open that address's part; data-close closes; data-confirm="text" asks first
// (data-confirm-title, data-confirm-yes for its words). HX-Trigger: muster:close closes both from the server.
"use strict";

(() => {
  const dialog = document.getElementById("dialog");
  const drawer = document.getElementById("drawer");
  const confirm = document.getElementById("confirm");
  const openers = new Map();

  // What was asked of may have been drawn anew meanwhile: its successor has the same id.
  const standing = (element) => (element?.isConnected ? element : element?.id ? document.getElementById(element.id) : null);

  const heading = (box) => box.querySelector("[autofocus]") || box.querySelector(".mu-dialog__title, h2, h1");

  const opened = (box, opener) => {
    if (!box.open) {
      openers.set(box, opener);
      if (box === drawer) box.show();
      else box.showModal();
    }
    const first = heading(box);
    if (!first) return;
    if (!first.matches("input, select, textarea, button, a")) first.tabIndex = -1;
    first.focus();
  };

  const load = async (url, box, opener) => {
    const body = box.firstElementChild;
    await window.htmx.ajax("GET", url, { target: body, swap: "innerHTML", source: body });
    if (body.dataset.loaded === url && body.childElementCount) opened(box, opener);
  };

  const open = (url, box, opener) => {
    const body = box.firstElementChild;
    delete body.dataset.loaded;
    const arrived = (event) => {
      if (event.detail.target !== body) return;
      body.dataset.loaded = url;
      body.removeEventListener("htmx:afterSwap", arrived);
    };
    body.addEventListener("htmx:afterSwap", arrived);
    load(url, box, opener);
  };

  const closed = (box) => {
    const opener = openers.get(box);
    openers.delete(box);
    const toasts = box.querySelector(":scope > #toasts");
    if (toasts) document.body.append(toasts);
    box.firstElementChild.id.endsWith("-body") && box.firstElementChild.replaceChildren();
    standing(opener)?.focus();
    box.dispatchEvent(new CustomEvent("muster:closed", { bubbles: true }));
  };

  for (const box of [dialog, drawer]) box.addEventListener("close", () => closed(box));
  drawer.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) drawer.close();
  });
  // A click on the shade around a dialog is a click on the dialog itself.
  dialog.addEventListener("click", (event) => { if (event.target === dialog && !dialog.querySelector("form")) dialog.close(); });

  const plainClick = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

  document.addEventListener("click", (event) => {
    const at = event.target;
    const wanted = at.closest("[data-dialog], [data-drawer]");
    if (wanted && plainClick(event)) {
      event.preventDefault();
      if (wanted.dataset.dialog) open(wanted.dataset.dialog, dialog, focusable(wanted));
      else open(wanted.dataset.drawer, drawer, focusable(wanted));
    } else if (at.closest("[data-close]")) {
      at.closest("dialog")?.close();
    }
  });

  // A menu's item is gone when its dialog closes: the button that opened the menu gets the focus.
  const focusable = (element) => {
    const menu = element.closest("[role=menu]");
    return (menu && document.querySelector(`[data-menu="#${menu.id}"]`)) || element;
  };

  document.addEventListener("muster:close", () => { for (const box of [dialog, drawer]) if (box.open) box.close(); });

  let asking = null;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-confirm]");
    if (!button || button.dataset.confirmed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    asking = button;
    document.getElementById("confirm-title").textContent = button.dataset.confirmTitle || "Are you sure?";
    document.getElementById("confirm-text").textContent = button.dataset.confirm;
    document.getElementById("confirm-yes").textContent = button.dataset.confirmYes || button.textContent.trim() || "Confirm";
    confirm.showModal();
    document.getElementById("confirm-no").focus();
  }, true);
  confirm.addEventListener("close", () => {
    const button = standing(asking);
    asking = null;
    if (button) standing(focusable(button))?.focus();
  });
  document.getElementById("confirm-no").addEventListener("click", () => confirm.close());
  document.getElementById("confirm-yes").addEventListener("click", () => {
    const button = standing(asking);
    confirm.close();
    if (!button) return window.muster?.toast("This has changed meanwhile, and nothing was done. Please look again.", "warning");
    button.dataset.confirmed = "1";
    button.click();
    delete button.dataset.confirmed;
  });
})();
