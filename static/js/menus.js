// Drop-down menus: a button with data-menu="#id" and an element role="menu" popover with that id. Arrow keys, Home, End, letters, Escape.
// And the panels of choices of tables.
"use strict";

(() => {
  const items = (menu) => [...menu.querySelectorAll("[role^=menuitem]")].filter((each) => !each.disabled && each.ariaDisabled !== "true");
  const buttonOf = (menu) => document.querySelector(`[data-menu="#${menu.id}"][aria-expanded="true"]`);
  const GAP = 4, MARGIN = 8;

  // In the top layer nothing clips a menu; it stands below its button, or above where there is no room.
  const place = (menu, button) => {
    const at = button.getBoundingClientRect();
    const box = menu.getBoundingClientRect();
    const below = at.bottom + GAP + box.height <= window.innerHeight - MARGIN || at.top < box.height;
    const left = at.left + box.width > window.innerWidth - MARGIN ? at.right - box.width : at.left;
    menu.style.left = `${Math.max(MARGIN, left)}px`;
    menu.style.top = `${below ? at.bottom + GAP : at.top - GAP - box.height}px`;
  };

  const show = (button, last = false) => {
    const menu = document.querySelector(button.dataset.menu);
    if (!menu) return;
    if (!menu.dataset.ready) prepare(menu);
    button.setAttribute("aria-expanded", "true");
    menu.showPopover();
    place(menu, button);
    const all = items(menu);
    all.forEach((each) => { each.tabIndex = -1; });
    (last ? all.at(-1) : all[0])?.focus();
  };

  const prepare = (menu) => {
    menu.dataset.ready = "1";
    menu.addEventListener("toggle", (event) => {
      if (event.newState === "closed") buttonOf(menu)?.setAttribute("aria-expanded", "false");
    });
  };

  const hide = (menu, refocus) => {
    const button = buttonOf(menu);
    if (refocus) button?.focus();
    if (menu.matches(":popover-open")) menu.hidePopover();
  };

  const move = (menu, event) => {
    const all = items(menu);
    const now = all.indexOf(document.activeElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) return all.at(to % all.length);
    if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.key === " ") return null;
    const letter = event.key.toLowerCase();
    return [...all.slice(now + 1), ...all.slice(0, now + 1)].find((each) => each.textContent.trim().toLowerCase().startsWith(letter));
  };

  // Where the pointer is pressed on the button of an open menu, the popover closes by itself: the click must not open it again.
  let wasOpen = null;
  document.addEventListener("pointerdown", (event) => {
    const button = event.target.closest?.("[data-menu]");
    wasOpen = button?.getAttribute("aria-expanded") === "true" ? button : null;
  }, true);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-menu]");
    if (button) {
      event.preventDefault();
      if (wasOpen === button && event.detail) hide(document.querySelector(button.dataset.menu), true);
      else show(button);
      wasOpen = null;
      return;
    }
    const item = event.target.closest("[role^=menuitem]");
    const menu = item?.closest("[role=menu][popover]");
    if (menu && !item.matches("[data-keep-open]")) hide(menu, true);
  });

  document.addEventListener("keydown", (event) => {
    const button = event.target.closest?.("[data-menu]");
    if (button && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      return show(button, event.key === "ArrowUp");
    }
    const menu = event.target.closest?.("[role=menu][popover]");
    if (!menu) return;
    if (event.key === "Escape") {
      event.preventDefault();
      hide(menu, true);
    } else if (event.key === "Tab") {
      hide(menu, true);
    } else {
      const next = move(menu, event);
      if (next) { event.preventDefault(); next.focus(); }
    }
  });

  // A page that scrolls or changes its size leaves a menu behind: close it.
  window.addEventListener("resize", () => document.querySelectorAll("[role=menu]:popover-open").forEach((menu) => hide(menu, false)));
  window.addEventListener("scroll", () => document.querySelectorAll("[role=menu]:popover-open").forEach((menu) => hide(menu, false)), { passive: true });

  // Choices of several values, in a details with data-pick: how many are made stands on its button.
  const counts = () => {
    for (const pick of document.querySelectorAll("[data-pick]")) {
      const shown = pick.querySelector("[data-pick-count]");
      if (!shown) continue;
      const typed = [...pick.querySelectorAll("input[type=text], input[type=number], input[type=date], select")];
      const chosen = pick.querySelectorAll("input:checked").length + typed.filter((each) => each.value).length;
      shown.textContent = chosen ? String(chosen) : "";
    }
  };

  // An open choice closes when one goes elsewhere, or presses Escape.
  const close = (pick) => { pick.open = false; };
  document.addEventListener("click", (event) => {
    for (const pick of document.querySelectorAll("[data-pick][open]")) if (!pick.contains(event.target)) close(pick);
  });
  document.addEventListener("keydown", (event) => {
    const pick = event.key === "Escape" && event.target.closest?.("[data-pick][open]");
    if (!pick) return;
    close(pick);
    pick.querySelector("summary").focus();
  });
  document.addEventListener("focusout", (event) => {
    const pick = event.target.closest?.("[data-pick][open]");
    // A click on a label gives the focus to what lies around the choice for a moment: that is not going elsewhere.
    const to = event.relatedTarget;
    if (pick && to && !pick.contains(to) && !to.contains(pick)) close(pick);
  });
  document.addEventListener("change", counts);
  document.addEventListener("htmx:afterSettle", counts);
  counts();
})();
