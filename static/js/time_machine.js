// The choice of a moment: the field and the slider are one, in the reader's time; the address has it in UTC.
(() => {
  "use strict";

  const MINUTE = 60000;
  const pad = (number) => String(number).padStart(2, "0");
  const day = (minutes) => new Date(minutes * MINUTE).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" });
  const time = (minutes) => new Date(minutes * MINUTE).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const words = (minutes) => new Date(minutes * MINUTE).toLocaleString("en-GB", { weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" });
  const toField = (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${pad(date.getHours())}:${pad(date.getMinutes())}`;

  const join = (form) => {
    const field = form.querySelector("[data-moment-field]");
    const box = form.querySelector("[data-moment-slider]");
    const slider = box.querySelector("input");
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const hidden = document.createElement("input");
    hidden.type = "hidden";
    hidden.name = "at";
    form.append(hidden);
    const say = () => { slider.setAttribute("aria-valuetext", words(Number(slider.value))); };
    // The server writes the field in UTC, for readers without scripts.
    let chosen = new Date(`${field.value}Z`);
    field.value = toField(chosen);
    field.removeAttribute("name");
    form.querySelector("[data-moment-zone]").textContent = zone ? `in your time (${zone})` : "in your time";
    const [least, most] = [Number(slider.min), Number(slider.max)];
    const end = day(least) === day(most) ? time : day;
    form.querySelector("[data-moment-least]").textContent = end(least);
    form.querySelector("[data-moment-most]").textContent = end(most);
    box.hidden = false;
    say();
    slider.addEventListener("input", () => {
      chosen = new Date(Number(slider.value) * MINUTE);
      field.value = toField(chosen);
      say();
    });
    field.addEventListener("input", () => {
      const moment = new Date(field.value);
      if (Number.isNaN(moment.getTime())) return;
      slider.value = String(Math.floor(moment.getTime() / MINUTE));
      say();
    });
    form.addEventListener("submit", () => {
      // Where clocks go back an hour comes twice, and the field cannot tell which of them it has.
      const moment = field.value === toField(chosen) ? chosen : new Date(field.value);
      hidden.value = Number.isNaN(moment.getTime()) ? "" : `${moment.toISOString().slice(0, 16)}Z`;
    });
  };

  for (const form of document.querySelectorAll("form[data-moment]")) join(form);
})();
