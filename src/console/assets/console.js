// Everything here is an addition: each page can be read, and each form works, without a script.
import { followFields, offerActions } from "./actions.js";
import { listenToKeys } from "./keys.js";
import { followChanges } from "./live.js";
import { offerNotifications } from "./notices.js";
import { followSelection } from "./select.js";
import { keepTimesFresh } from "./times.js";
import { markVisits } from "./visits.js";

const root = document.documentElement;

export function switchTheme() {
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  // The server renders the theme, so that a page does not flash.
  document.cookie = `theme=${root.dataset.theme}; Path=/; Max-Age=31536000; SameSite=Strict`;
}

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  button.hidden = false;
  button.addEventListener("click", switchTheme);
}

for (const block of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn quiet slim";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.before(button);
}

// An error stands where the action was: the sheet closes, and the error is at the top of the page.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "outcome") return;
  document.querySelector(".sheet:popover-open")?.hidePopover();
  event.target.scrollIntoView({ block: "center" });
});

// A link may lead to a confirmation, which opens. Nothing is done by it.
function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.matches(".sheet[popover]")) named.showPopover();
  else if (named?.matches("input, select, textarea")) named.focus();
}
addEventListener("hashchange", openNamed);

keepTimesFresh();
listenToKeys({ switchTheme });
followChanges();
offerNotifications();
followSelection();
offerActions();
followFields();
markVisits();
openNamed();
root.dataset.ready = "";
