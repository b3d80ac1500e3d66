// Light or dark: as the system has it, unless told otherwise.
const ORDER = ["auto", "light", "dark"];

function stored() {
  try {
    return localStorage.getItem("maymust-theme") || "auto";
  } catch {
    return "auto"; // a page from disk may have no storage
  }
}

export function themeButton(button) {
  let theme = ORDER.includes(stored()) ? stored() : "auto";
  const set = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    try {
      localStorage.setItem("maymust-theme", theme);
    } catch {
      // it holds for this page, then
    }
    set();
  });
  set();
}
