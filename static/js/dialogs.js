// The page's one dialog, its side drawer, and the question before what cannot be undone.
// data-dialog="/url" and data-drawer="/url" open that address's part; data-close closes; data-confirm="text" asks first
// (data-confirm-title, data-confirm-yes for its words). HX-Trigger: muster:close closes both from the server.
// data-shown-once marks what cannot be shown again: the dialog with it asks before it closes.
"use strict";

(() => {
  const dialog = document.getElementById("dialog");
  const drawer = document.getElementById("drawer");
  const confirm = document.getElementById("confirm");
  const openers = new Map();

  // What was asked of may have been drawn anew meanwhile: its successor has the same id.
  const standing = (element) => (element?.isConnected ? element : element?.id ? document.getElementById(element.id) : null);

  const heading = (box) => box.querySelector("[autofocus]") || box.querySelector(".mu-dialog__title, h2, h1");

  const focusHeading = (box) => {
    const first = heading(box);
    if (!first) return;
    if (!first.matches("input, select, textarea, button, a")) first.tabIndex = -1;
    first.focus();
  };

  // What gets the focus is scrolled out from under the bars that stick, which are as high as their words need.
  const GAP = 8;
  const clearBars = (box) => {
    const height = (selector) => {
      const bar = box.querySelector(selector);
      return (bar && getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0) + GAP;
    };
    box.style.scrollPaddingBlock = `${height(".mu-dialog__head, .wl-title")}px ${height(".mu-dialog__foot")}px`;
  };
  const sizes = new ResizeObserver((entries) => { for (const { target } of entries) clearBars(target); });
  document.querySelectorAll("dialog").forEach((box) => sizes.observe(box));
  document.addEventListener("htmx:afterSwap", ({ target }) => { if (target.closest("dialog")) clearBars(target.closest("dialog")); });

  // Beside the drawer the page can be used; where the drawer covers it (css/parts.css has its width), nothing behind it is reached.
  const narrowWindow = window.matchMedia("(width <= 820px)");
  const show = (box) => {
    if (box === drawer && !narrowWindow.matches) box.show();
    else box.showModal();
  };
  const fitDrawer = () => {
    if (!drawer.open || drawer.matches(":modal") === narrowWindow.matches) return;
    // Shown anew, the drawer would stand in front of a question about it: that calls this again when it closes.
    if (document.querySelector("dialog:modal:not(#drawer)")) return;
    const focused = document.activeElement;
    const { scrollTop } = drawer;
    drawer.close();
    show(drawer);
    drawer.scrollTop = scrollTop;
    focused.focus({ preventScroll: true });
  };
  narrowWindow.addEventListener("change", fitDrawer);
  // Captured, as it does not bubble: any dialog may have stood in front, that of the keys too.
  document.addEventListener("close", fitDrawer, true);

  const opened = (box, opener) => {
    if (!box.open) {
      openers.set(box, opener);
      show(box);
    }
    focusHeading(box);
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
    delete body.dataset.returned;
    load(url, box, opener);
  };

  const closed = (box) => {
    // The event comes a moment later: it may be open again.
    if (box.open) return;
    const opener = openers.get(box);
    openers.delete(box);
    const toasts = box.querySelector(":scope > #toasts");
    if (toasts) document.body.append(toasts);
    box.firstElementChild.id.endsWith("-body") && box.firstElementChild.replaceChildren();
    delete box.firstElementChild.dataset.returned;
    standing(opener)?.focus();
    box.dispatchEvent(new CustomEvent("muster:closed", { bubbles: true }));
  };

  // A form that came back with its errors has what was typed before as its own values.
  const isUnsaved = (box) => {
    const body = box.firstElementChild;
    return "returned" in body.dataset ? !!body.querySelector("form :is(input:not([type=hidden]), textarea, select)") : window.muster.unsaved.isIn(box);
  };

  const askBeforeClosing = (event, box) => {
    const question = box.querySelector("[data-shown-once]") ? SHOWN_ONCE : isUnsaved(box) ? DISCARD : null;
    if (!question) return false;
    event.preventDefault();
    ask(question, document.activeElement, () => box.close());
    return true;
  };

  for (const box of [dialog, drawer]) {
    box.addEventListener("close", () => closed(box));
    box.addEventListener("htmx:afterSwap", ({ detail }) => {
      if (detail.target !== box.firstElementChild || detail.requestConfig?.verb !== "post") return;
      detail.target.dataset.returned = "1";
      // The button that was pressed is gone; what is wrong gets the focus once it has settled.
      focusHeading(box);
    });
    // Not "cancel" alone: after one that was prevented a browser closes without it.
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || askBeforeClosing(event, box)) return;
      if (box === drawer) drawer.close();
    });
    box.addEventListener("cancel", (event) => { if (event.target === box) askBeforeClosing(event, box); });
  }
  // A click on the shade around a dialog is a click on the dialog itself.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && !dialog.querySelector("form") && !askBeforeClosing(event, dialog)) dialog.close();
  });

  const plainClick = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

  document.addEventListener("click", (event) => {
    const at = event.target;
    const wanted = at.closest("[data-dialog], [data-drawer]");
    if (wanted && plainClick(event)) {
      event.preventDefault();
      if (wanted.dataset.dialog) open(wanted.dataset.dialog, dialog, focusable(wanted));
      else open(wanted.dataset.drawer, drawer, focusable(wanted));
    } else if (at.closest("[data-close]")) {
      const box = at.closest("dialog");
      // Who presses Cancel has thought of what is typed, but not of what comes no second time.
      if (!box?.querySelector("[data-shown-once]") || !askBeforeClosing(event, box)) box?.close();
    }
  });

  // A menu's item is gone when its dialog closes: the button that opened the menu gets the focus.
  const focusable = (element) => {
    const menu = element.closest("[role=menu]");
    return (menu && document.querySelector(`[data-menu="#${menu.id}"]`)) || element;
  };

  document.addEventListener("muster:close", () => { for (const box of [dialog, drawer]) if (box.open) box.close(); });

  const DISCARD = {
    title: "Throw away what you typed?",
    text: "It has not been saved or sent. Closing this loses it.",
    yes: "Throw it away",
    no: "Keep it",
  };

  const SHOWN_ONCE = {
    title: "Close without another look?",
    text: "What stands here is shown this once. Copy it before you close, if you have not: nobody can show it again.",
    yes: "Close it",
    no: "Keep it open",
  };

  // The question that is open: where it was asked, and what a Yes does with that element as it stands then.
  let asking = null, act = null;

  const ask = ({ title, text, yes, no = "Cancel" }, element, action) => {
    asking = element;
    act = action;
    document.getElementById("confirm-title").textContent = title;
    document.getElementById("confirm-text").textContent = text;
    document.getElementById("confirm-yes").textContent = yes;
    document.getElementById("confirm-no").textContent = no;
    confirm.showModal();
    document.getElementById("confirm-no").focus();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-confirm]");
    if (!button || button.dataset.confirmed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const yes = button.dataset.confirmYes || button.textContent.trim() || "Confirm";
    ask({ title: button.dataset.confirmTitle || "Are you sure?", text: button.dataset.confirm, yes }, button, (standingButton) => {
      standingButton.dataset.confirmed = "1";
      standingButton.click();
      delete standingButton.dataset.confirmed;
    });
  }, true);
  confirm.addEventListener("close", () => {
    // The event comes a moment later: the next question may stand already.
    if (confirm.open) return;
    const button = standing(asking);
    asking = null;
    if (button) standing(focusable(button))?.focus();
  });
  document.getElementById("confirm-no").addEventListener("click", () => confirm.close());
  document.getElementById("confirm-yes").addEventListener("click", () => {
    const button = standing(asking);
    confirm.close();
    if (!button) return window.muster?.toast("This has changed meanwhile, and nothing was done. Please look again.", "warning");
    act(button);
  });
})();
