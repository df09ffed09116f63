// The keys, the colours and the messages of errors. Every page works without this file.
(() => {
  "use strict";

  const root = document.documentElement;
  const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
  const NEXT = { auto: "light", light: "dark", dark: "auto" };

  function showTheme() {
    const theme = root.dataset.theme ?? "auto";
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.setAttribute("aria-label", `Colours: ${NAMES[theme]}`);
      button.querySelector("[data-theme-name]").textContent = NAMES[theme];
    }
  }

  function nextTheme() {
    const theme = NEXT[root.dataset.theme ?? "auto"];
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    try {
      localStorage.setItem("locus-memory-theme", theme);
    } catch {
      // The choice lasts as long as this page.
    }
    showTheme();
  }

  const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);

  function step(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.contains(document.activeElement));
    const wanted = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
    const row = all[Math.min(Math.max(wanted, 0), all.length - 1)];
    const target = row.matches("a, button, summary") ? row : row.querySelector("a, button, summary");
    (target ?? row).focus();
    row.scrollIntoView({ block: "nearest" });
  }

  function search() {
    const field = document.querySelector("[data-search]");
    field?.focus();
    field?.select();
  }

  const keys = () => document.querySelector("[data-keys-dialog]");
  const ACTS = {
    "/": search,
    j: () => step(1),
    k: () => step(-1),
    "?": () => (keys().open ? keys().close() : keys().showModal()),
  };

  document.addEventListener("keydown", (event) => {
    const isWriting = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (isWriting && event.key === "Escape") event.target.blur();
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = ACTS[event.key];
    if (!act || (keys().open && event.key !== "?")) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-theme-toggle]")) nextTheme();
    if (event.target.closest?.("[data-keys]")) keys().showModal();
    if (event.target === keys()) keys().close();
  });

  function trouble(text) {
    const place = document.querySelector("[data-trouble]");
    place.textContent = text;
    place.hidden = !text;
  }

  document.addEventListener("htmx:afterOnLoad", () => trouble(""));
  document.addEventListener("htmx:sendError", () => trouble("The server does not answer."));
  document.addEventListener("htmx:responseError", (event) => {
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const reason = page.querySelector(".notice p:not(.code)")?.textContent;
    trouble(reason ?? `The server answered ${event.detail.xhr.status}.`);
  });

  showTheme();
})();
