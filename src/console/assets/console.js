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

function offerCopies() {
  for (const block of document.querySelectorAll("[data-copy='']")) {
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
    block.dataset.copy = "offered";
  }
}
offerCopies();
// The answer to a form may be a page, whose content takes the place of the present one.
document.addEventListener("htmx:afterSwap", offerCopies);

// The search shows an error below its field. A poll that fails changes nothing, and is repeated.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.xhr.status < 400) return;
  const { elt, triggeringEvent } = detail.requestConfig;
  if (elt.id === "q") detail.target = document.getElementById("found");
  else if (!triggeringEvent) detail.shouldSwap = false;
});

// An error stands where the action was: the sheet closes, and the error is at the top of the page.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "outcome") return;
  document.querySelector(".sheet:popover-open")?.hidePopover();
  event.target.scrollIntoView({ block: "center" });
});

// Without an answer there is no error to show. The server closes the connection while it is sent more than it takes.
document.addEventListener("htmx:sendError", (event) => {
  const outcome = document.getElementById("outcome");
  if (!outcome || event.detail.requestConfig.verb === "get") return;
  const form = event.target.closest("form") ?? event.target;
  const hasFiles = [...form.querySelectorAll("input[type=file]")].some((input) => input.files.length > 0);
  const section = document.createElement("section");
  section.className = "error";
  const heading = document.createElement("h2");
  heading.textContent = "The form was not answered";
  const words = document.createElement("p");
  words.textContent = hasFiles
    ? "The connection was lost, or the files are too large together. The hint below the files names the limits. Choose fewer or smaller files, or try again."
    : "The connection to the server was lost. Check the page for the change before you try again: the form may have arrived.";
  section.append(heading, words);
  document.querySelector(".sheet:popover-open")?.hidePopover();
  outcome.replaceChildren(section);
  outcome.scrollIntoView({ block: "center" });
});

// A link may lead to a confirmation, which opens. Nothing is done by it.
function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.matches(".sheet[popover]")) {
    if (!named.matches(":popover-open")) named.showPopover();
    named.querySelector("input:not([type=hidden]), textarea, select, button")?.focus();
    // Without the hash, the same link opens it again.
    history.replaceState(history.state, "", location.pathname + location.search);
  } else if (named?.matches("input, select, textarea")) named.focus();
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
