// What every page does: fresh times, open tabs in sight, copy buttons, toasts, the navigation on small screens, and htmx's manners.
// For other scripts: window.muster = { toast(text, kind), icon(name), refusal(text), freshen(root), isSignInPage(xhr) }.
"use strict";

window.muster = (() => {
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

  // Another year is named: what is kept for long looks like what is of today otherwise.
  const formatter = (parts) => {
    const short = new Intl.DateTimeFormat("en-GB", parts), long = new Intl.DateTimeFormat("en-GB", { ...parts, year: "numeric" });
    return (moment) => (moment.getFullYear() === new Date().getFullYear() ? short : long).format(moment);
  };
  const minute = formatter({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const second = formatter({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

  const clock = (moment) => (moment.toDateString() === new Date().toDateString() ? time.format(moment) : minute(moment));

  const rough = (seconds) => {
    if (seconds < MINUTE) return `${Math.floor(seconds)} s`;
    if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
    if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
    const days = Math.floor(seconds / DAY);
    return days > 30 ? "" : days === 1 ? "1 day" : `${days} days`;
  };

  const distance = (moment) => {
    const seconds = (Date.now() - moment.getTime()) / 1000;
    if (Math.abs(seconds) < 1) return "just now";
    const words = rough(Math.abs(seconds));
    if (!words) return day.format(moment);
    return seconds > 0 ? `${words} ago` : `in ${words}`;
  };

  const freshen = (root = document) => {
    for (const each of root.querySelectorAll("time[data-when], time[data-at], time[data-clock]")) {
      const moment = new Date(each.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      const words = "at" in each.dataset ? (each.dataset.at === "seconds" ? second : minute)(moment) : "clock" in each.dataset ? clock(moment) : distance(moment);
      if (each.textContent !== words) each.textContent = words;
      if (!each.dataset.exact) {
        each.dataset.exact = "1";
        each.title = exact.format(moment);
      }
    }
  };

  // On a small window a row of tabs scrolls: the open one has to be in sight, once, when the row comes.
  const shownTabs = new WeakSet();
  const showOpenTabs = () => {
    for (const tabs of document.querySelectorAll(".wl-tabs, .lg-tabs")) {
      const here = tabs.querySelector("[aria-current]")?.getBoundingClientRect();
      if (!here?.width || shownTabs.has(tabs)) continue;
      shownTabs.add(tabs);
      const row = tabs.getBoundingClientRect();
      if (here.left < row.left || here.right > row.right) tabs.scrollLeft += here.left - row.left - (row.width - here.width) / 2;
    }
  };

  const icon = (name) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "mu-icon");
    svg.setAttribute("width", "16");
    svg.setAttribute("height", "16");
    svg.setAttribute("aria-hidden", "true");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
    svg.append(use);
    return svg;
  };

  const ICONS = { error: icon.bind(null, "circle-x"), warning: icon.bind(null, "triangle-alert"), success: icon.bind(null, "circle-check") };
  const STAY = 8000;

  // Errors stay until they are dismissed; the rest goes by itself, but not while somebody is on it.
  const ages = new WeakMap();
  const age = (toast) => {
    if (["error", "notice"].includes(toast.dataset.toast)) return;
    const leaveAfter = (delay) => {
      window.clearTimeout(ages.get(toast));
      ages.set(toast, window.setTimeout(leave, delay));
    };
    const leave = () => (toast.matches(":hover, :focus-within") ? leaveAfter(STAY / 2) : toast.remove());
    leaveAfter(STAY);
  };

  const WORDS = ".mu-toast__text", COUNT = ".mu-toast__count";
  // Equal messages would push others out of sight: one stands, and says how often it came.
  const repeat = (toast) => {
    const times = Number(toast.dataset.times || 1) + 1;
    toast.dataset.times = String(times);
    toast.querySelector(COUNT).textContent = `${times} times`;
    age(toast);
  };

  const toast = (text, kind = "info") => {
    // Behind an open dialog nobody would see it.
    const toasts = document.getElementById("toasts");
    const host = [...document.querySelectorAll("dialog:modal")].at(-1) || document.body;
    if (toasts.parentElement !== host) host.append(toasts);
    const equal = [...toasts.children].find((each) => each.dataset.toast === kind && each.querySelector(WORDS).textContent === text);
    if (equal) return repeat(equal);
    const made = document.getElementById("toast-template").content.firstElementChild.cloneNode(true);
    made.dataset.toast = kind;
    made.className = `mu-toast mu-toast--${kind}`;
    if (ICONS[kind]) made.firstElementChild.replaceWith(ICONS[kind]());
    made.querySelector(WORDS).textContent = text;
    toasts.append(made);
    age(made);
  };

  // What was refused is told where one looks: in the open dialog, else as a toast.
  const refusal = (text) => {
    const open = document.querySelector("dialog:modal .mu-dialog__body");
    if (!open) return toast(text, "error");
    open.querySelector(":scope > .mu-alert--refused")?.remove();
    const told = document.createElement("div");
    told.className = "mu-alert mu-alert--danger mu-alert--refused";
    told.setAttribute("role", "alert");
    const words = document.createElement("p");
    words.textContent = text;
    told.append(icon("circle-x"), words);
    open.prepend(told);
  };

  const copied = async (button) => {
    const from = document.querySelector(button.dataset.copy);
    if (!from) return;
    const text = "value" in from ? from.value : from.textContent;
    try {
      await navigator.clipboard.writeText(text.trim());
    } catch {
      // Without a secure origin there is no clipboard: select the text, so that Ctrl+C does it.
      window.getSelection().selectAllChildren(from);
      return toast("This browser does not let a page copy here. The text is selected: press Ctrl+C.", "warning");
    }
    const drawing = button.querySelector("svg");
    const done = icon("check");
    drawing?.replaceWith(done);
    button.dataset.copied = "1";
    toast("Copied.", "success");
    window.setTimeout(() => { if (drawing) done.replaceWith(drawing); delete button.dataset.copied; }, 2000);
  };

  const cookie = (name) => document.cookie.split("; ").find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);

  // The part or page that refused says why in an element marked data-refused.
  const reason = (xhr) => {
    if (!xhr.status) return "Muster does not answer. Check the connection and try again.";
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const told = page.querySelector("[data-refused]")?.textContent.replace(/\s+/g, " ").trim();
    return told || `It could not be done (HTTP ${xhr.status}). Load the page again and repeat it.`;
  };

  const isSignInPage = (xhr) => !!xhr.responseURL && new URL(xhr.responseURL).pathname === document.body.dataset.signIn;

  document.addEventListener("htmx:configRequest", (event) => {
    const token = cookie("muster_csrf") || document.querySelector("meta[name=csrf-token]")?.content;
    if (token) event.detail.headers["X-CSRFToken"] = token;
  });
  // Who signed in again in another tab has a new token; what is typed in this one is theirs all the same.
  document.addEventListener("formdata", ({ formData }) => {
    const token = cookie("muster_csrf");
    if (token && formData.has("csrfmiddlewaretoken")) formData.set("csrfmiddlewaretoken", token);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const xhr = event.detail.xhr;
    if (isSignInPage(xhr)) {
      event.detail.shouldSwap = false;
      window.muster.unsaved.reloadWhenDone(
        "You are signed out, so nothing was done. This page is loaded anew when you have closed or emptied what you are at: copy what you want to keep before.",
        { isAnswer: event.detail.requestConfig?.verb !== "get" },
      );
    } else if (/^\s*<div[^>]*\bdata-refused\b/.test(xhr.responseText || "")) {
      event.detail.shouldSwap = false;
      if (!event.detail.isError) refusal(reason(xhr));
    }
  });
  document.addEventListener("htmx:responseError", (event) => refusal(reason(event.detail.xhr)));
  document.addEventListener("htmx:sendError", (event) => {
    // What asks by itself, again and again, must not fill the page with what the banner says.
    if (event.detail.requestConfig?.triggeringEvent) refusal(reason(event.detail.xhr));
  });
  document.addEventListener("htmx:afterSettle", (event) => { freshen(event.target); showOpenTabs(); });
  document.addEventListener("muster:toast", (event) => toast(event.detail.text, event.detail.kind));

  document.addEventListener("click", (event) => {
    const at = event.target;
    const copy = at.closest("[data-copy]");
    if (copy) copied(copy);
    at.closest("[data-dismiss]")?.closest("[data-toast]")?.remove();
  });

  // Whoever was refused goes on at the first thing that is wrong; where a page says what to begin with, there.
  const WRONG = "form[method=post] :is([data-wrong], [aria-invalid=true])";
  const focusWrong = (root) => {
    const wrong = root.querySelector(WRONG);
    for (let part = wrong?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    wrong?.focus();
  };
  document.addEventListener("htmx:afterSettle", ({ target, detail }) => { if (detail.requestConfig?.verb === "post") focusWrong(target); });
  // A button that is disabled while its form is sent loses the focus: it gets it back, unless something else has it.
  let sender = null;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => { if (detail.requestConfig.verb === "post") sender = document.activeElement; });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.requestConfig?.verb !== "post") return;
    if (document.activeElement === document.body && sender?.isConnected && sender.matches("button")) sender.focus({ preventScroll: true });
    sender = null;
  });

  // A form whose answer is a page is sent once, however often its button is pressed before the page is there.
  // A button that asks for something else, as BACK does, still works: somebody has thought better of it.
  const action = (button) => ["name", "value", "formaction"].map((name) => button?.getAttribute(name) || "").join("\n");
  let sent = new WeakMap();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.getAttribute("method")?.toLowerCase() !== "post") return;
    const actions = sent.get(form) || new Set();
    if (actions.has(action(event.submitter))) {
      event.preventDefault();
      toast("It is being sent. Load the page again if nothing comes.");
    }
    sent.set(form, actions.add(action(event.submitter)));
  });
  // Whoever types on, after sending was broken off, or comes back to the page as it was, may send it again.
  document.addEventListener("input", ({ target }) => { if (target.form) sent.delete(target.form); });
  window.addEventListener("pageshow", () => { sent = new WeakMap(); });

  const navigation = () => {
    const button = document.getElementById("nav-toggle");
    const nav = document.getElementById("nav");
    const shade = document.getElementById("nav-shade");
    if (!button || !nav) return;
    // On a low screen the navigation scrolls: where one is has to be in sight.
    const here = nav.querySelector("[aria-current]");
    if (here && here.offsetTop + here.offsetHeight > nav.clientHeight) nav.scrollTop = nav.scrollHeight;
    const show = (open) => {
      nav.classList.toggle("mu-nav--open", open);
      button.setAttribute("aria-expanded", String(open));
      shade.hidden = !open;
      if (open) nav.querySelector("a")?.focus();
    };
    button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
    shade.addEventListener("click", () => show(false));
    nav.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && button.getAttribute("aria-expanded") === "true") { show(false); button.focus(); }
    });
    nav.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !nav.contains(event.relatedTarget) && event.relatedTarget !== button) show(false);
    });
  };

  navigation();
  freshen();
  showOpenTabs();
  if (!document.querySelector("main [autofocus]")) focusWrong(document);
  document.querySelectorAll("#toasts [data-toast]").forEach(age);
  window.setInterval(() => { if (!document.hidden) freshen(); }, 5000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) freshen(); });
  return { toast, icon, refusal, freshen, isSignInPage };
})();
