// Where it begins.
import { openFile } from "./file.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { openServed } from "./served.js";
import { themeButton } from "./theme.js";

const data = JSON.parse(document.getElementById("data").textContent);
const help = helpDialog();
themeButton(document.getElementById("theme"));
document.getElementById("help-open").addEventListener("click", help);
const page = data.mode === "serve" ? openServed(data) : openFile(data);
listenToKeys({ ...page.keys(), "?": help });
