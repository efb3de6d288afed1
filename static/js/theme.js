// Before the first paint: the system's dark theme where nobody chose one. Loaded without defer on purpose.
"use strict";

(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    root.classList.toggle("pf-v6-theme-dark", dark);
  };
  const choose = (theme) => {
    root.dataset.theme = theme;
    const secure = window.location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `muster_theme=${theme}; path=/; max-age=${theme ? 31536000 : 0}; SameSite=Lax${secure}`;
    apply();
    for (const each of document.querySelectorAll("[data-theme-choice]")) {
      each.setAttribute("aria-checked", String(each.dataset.themeChoice === theme));
    }
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    const choice = event.target.closest?.("[data-theme-choice]");
    if (choice) choose(choice.dataset.themeChoice);
  });
})();
