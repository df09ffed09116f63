// The colours that were chosen are there before the page is drawn.
(() => {
  try {
    const chosen = localStorage.getItem("locus-memory-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser without storage follows the system.
  }
})();
