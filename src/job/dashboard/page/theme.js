// Light or dark: as the system has it, until the button says otherwise; that is kept in the browser. No module, and before
// the page is drawn, so that it never flashes. Tells others by a "theme" event on the document.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return localStorage.getItem("troupe-theme");
    } catch {
      return null; // A browser that keeps nothing.
    }
  }

  function show() {
    root.dataset.theme = kept() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new Event("theme"));
  }

  function change() {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("troupe-theme", theme);
    } catch {
      // It is not kept, but it holds for now.
    }
    root.dataset.theme = theme;
    document.dispatchEvent(new Event("theme"));
  }

  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", change);
  });
})();
