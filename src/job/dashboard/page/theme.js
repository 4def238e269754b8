// Light or dark: the system's theme, until the button sets another, which the browser keeps. Not a module, and run before the page is
// drawn, so that the page never flashes. Dispatches a "theme" event on the document.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return localStorage.getItem("troupe-theme");
    } catch {
      return null; // The browser blocks storage.
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
      // Not stored, but in effect for now.
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
