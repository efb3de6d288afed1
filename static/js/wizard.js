// The wizard's conveniences: typed values are stored while one types, rows come and go in place, cards are searched.
// Without this script every button still works, by sending the form.
"use strict";

(() => {
  const QUIET = 300;
  const form = document.getElementById("wizard");

  // ---- Storing what is typed ----
  const stored = () => {
    const url = form.dataset.save;
    const said = document.getElementById("saved");
    const REFUSALS = {
      409: "Not saved: this was submitted already",
      412: "Not saved: you changed this in another tab or window. CONTINUE shows what.",
    };
    let timer = 0;
    let changed = false;
    let sent = 0;
    let stamp = Number(form.elements.at.value);
    // One name for all that this tab shows: the last save of a page that was left may come after the next page was drawn.
    try {
      form.elements.page.value = sessionStorage.musterPage ??= form.elements.page.value;
    } catch { /* Where nothing may be kept, each page has its own. */ }
    // Counts up from what was stored last, by a machine whose clock may be ahead of this one.
    const raiseStamp = () => {
      stamp = Math.max(Date.now(), stamp + 1);
      form.elements.at.value = String(stamp);
    };

    const send = (event) => {
      window.clearTimeout(timer);
      if (!changed) return;
      changed = false;
      const mine = ++sent;
      raiseStamp();
      // Browsers take no more than 64 KiB of what outlives its page.
      const keepalive = event?.type === "pagehide";
      fetch(url, { method: "POST", body: new URLSearchParams(new FormData(form)), keepalive, credentials: "same-origin" })
        .then((answer) => { if (!answer.ok || answer.redirected) throw new Error(String(answer.status)); return answer.text(); })
        .then((start) => { if (start && mine === sent) form.elements.started_from.value = start; })
        // What was typed after this was sent is not stored by it.
        .then(() => { if (mine === sent && !changed) said.textContent = "Saved"; })
        .then(redraw)
        .catch((error) => {
          // What was sent after this has all that this had.
          if (mine !== sent) return;
          changed = true;
          said.textContent = REFUSALS[error.message] || "Not saved yet";
        });
    };
    const later = (event) => {
      if (event.target.form !== form) return;
      changed = true;
      said.textContent = "";
      window.clearTimeout(timer);
      timer = window.setTimeout(send, event.type === "change" ? 0 : QUIET);
    };
    document.addEventListener("input", later);
    document.addEventListener("change", later);
    form.addEventListener("muster:rows", () => { changed = true; send(); });
    // What is left unsent goes with the page; the browser finishes it.
    window.addEventListener("pagehide", send);
    // The form's own request stores all of it. Whoever breaks that off and types on is stored again.
    form.addEventListener("submit", () => {
      window.clearTimeout(timer);
      raiseStamp();
      changed = false;
      sent += 1;
    });
  };

  // ---- A total of GPUs, or a number of workers ----
  // The machines are drawn anew from what was stored, where there is a total, or was.
  const redraw = () => {
    const picture = document.getElementById("machines");
    const total = form.elements.total_gpus;
    if (picture && total && (total.value.trim() || picture.childElementCount)) picture.dispatchEvent(new CustomEvent("muster:stored"));
  };
  const totals = () => {
    const { total_gpus: total, workers } = form?.elements ?? {};
    if (!total || !workers || workers.disabled) return;
    // A number that does not count is not shown; it comes back when the total is taken away.
    let typed = workers.value;
    const choose = () => {
      const isTotal = Boolean(total.value.trim());
      if (isTotal === workers.disabled) return;
      if (isTotal) typed = workers.value;
      workers.disabled = isTotal;
      workers.value = isTotal ? "" : typed;
      workers.placeholder = isTotal ? "Worked out" : "";
    };
    total.addEventListener("input", choose);
    choose();
  };

  // ---- Rows ----
  const numbered = (fragment, number) => {
    for (const element of fragment.querySelectorAll("*")) {
      for (const attribute of element.attributes) {
        if (attribute.value.includes("__n__")) attribute.value = attribute.value.replaceAll("__n__", number);
      }
    }
    return fragment;
  };

  const add = (button) => {
    const rows = button.closest("[data-rows]");
    const list = rows.querySelector("[data-rows-list]");
    const used = [...list.children].map((row) => Number(row.dataset.rowOf.slice(rows.dataset.rows.length + 1)));
    const made = numbered(rows.querySelector("template").content.cloneNode(true), String(Math.max(-1, ...used) + 1));
    list.append(made);
    list.lastElementChild.querySelector("input, select, textarea").focus();
    told(rows);
  };

  const remove = (button) => {
    const rows = button.closest("[data-rows]");
    const row = button.closest("[data-row-of]");
    const next = (row.nextElementSibling || row.previousElementSibling)?.querySelector("[data-remove-row]");
    row.remove();
    (next || rows.querySelector("[data-add-row]")).focus();
    told(rows);
  };

  const told = (rows) => { if (rows.closest("form") === form) form.dispatchEvent(new CustomEvent("muster:rows")); };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add-row], [data-remove-row]");
    if (!button) return;
    event.preventDefault();
    if ("addRow" in button.dataset) add(button);
    else remove(button);
  });

  // ---- Cards ----
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-find-cards]")) return;
    const wanted = event.target.value.trim().toLowerCase();
    for (const card of event.target.closest("fieldset").querySelectorAll("[data-card]")) {
      card.hidden = Boolean(wanted) && !card.textContent.toLowerCase().includes(wanted) && !card.querySelector("input").checked;
    }
  });
  document.addEventListener("keydown", (event) => {
    // Enter in the search field looks at what was found; it does not leave the step.
    if (event.key === "Enter" && event.target.matches("[data-find-cards]")) event.preventDefault();
  });

  // ---- Templates of another project ----
  // What is chosen while they are on their way stays chosen, where it is among them.
  let chosen = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "template-choice") chosen = event.detail.target.querySelector("input:checked")?.id ?? "";
  });
  document.addEventListener("htmx:afterSwap", () => {
    const card = chosen && document.getElementById(chosen);
    if (card) card.checked = true;
    chosen = "";
  });

  // ---- Projects of the chosen cluster, and what it runs ----
  const projects = () => {
    const cluster = document.getElementById("id_cluster");
    const groups = document.querySelectorAll("#id_project optgroup");
    if (!cluster || !groups.length) return;
    const fit = () => {
      const chosen = cluster.selectedOptions[0]?.textContent;
      for (const group of groups) group.disabled = group.label !== chosen;
      const project = document.getElementById("id_project");
      if (project.selectedOptions[0]?.closest("optgroup")?.disabled) {
        project.value = document.querySelector("#id_project optgroup:not(:disabled) option")?.value ?? "";
      }
    };
    cluster.addEventListener("change", fit);
    fit();
  };

  const frameworks = () => {
    const cluster = document.getElementById("id_cluster");
    if (!cluster) return;
    for (const button of document.querySelectorAll("[data-without-scripts]")) button.hidden = true;
    const fit = () => {
      for (const card of document.querySelectorAll("[data-framework]")) {
        const radio = card.querySelector("input");
        let off = false;
        for (const why of card.querySelectorAll("[data-why-on]")) {
          why.hidden = !why.dataset.whyOn.split(" ").includes(cluster.value);
          off ||= !why.hidden;
        }
        // What is chosen stays so, for the step to say what is wrong with it.
        radio.disabled = off && !radio.checked;
        card.classList.toggle("mw-card--off", radio.disabled);
      }
    };
    cluster.addEventListener("change", fit);
    document.addEventListener("change", (event) => { if (event.target.name === "framework") fit(); });
    fit();
  };

  // ---- From what is wrong to its field ----
  const FIELD = "input:not([type=hidden], [type=search]):enabled, select:enabled, textarea:enabled, [data-add-row]";
  const listWrongFields = (summary) => {
    const list = document.createElement("ul");
    for (const error of form.querySelectorAll(".mu-error")) {
      // The error of a group of cards stands below it.
      const place = error.closest(".mu-field, [data-rows]") || error.previousElementSibling;
      const field = place?.querySelector(FIELD);
      if (!field) continue;
      const link = document.createElement("a");
      link.href = `#${field.id}`;
      const name = place.querySelector("legend, .pf-v6-c-form__label-text, .pf-v6-c-check__label").textContent.trim();
      link.textContent = `${name}: ${error.textContent.trim()}`;
      link.addEventListener("click", (event) => {
        event.preventDefault();
        for (let part = field.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
        field.focus({ preventScroll: true });
        place.scrollIntoView({ block: "center" });
      });
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    if (list.childElementCount) summary.querySelector(".mu-alert__words").append(list);
  };
  const summary = form && document.getElementById("wrong");
  if (summary) listWrongFields(summary);

  if (form?.dataset.save) stored();
  totals();
  projects();
  frameworks();
})();
