// Where it begins: `open` shows the data, and says which keys it knows.
import { helpDialog, listenToKeys } from "./keys.js";
import { themeButton } from "./theme.js";

export function start(open) {
  const help = helpDialog();
  themeButton(document.getElementById("theme"));
  document.getElementById("help-open").addEventListener("click", help);
  const page = open(JSON.parse(document.getElementById("data").textContent));
  listenToKeys({ ...page.keys(), "?": help });
}
