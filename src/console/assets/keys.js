// The keyboard. No key changes data without a confirmation.
import { toggleRow } from "./select.js";
import { showNext } from "./visits.js";

const PLACES = { o: "/", w: "/work", c: "/campaigns", t: "/tasks", s: "/sessions" };
const ROWS = ".main tbody tr, .main .rows > li, .main .post, .main article.msg, .main .card";

// Some keyboards write these with AltGr or Option. Windows reports AltGr as Ctrl and Alt together.
const WITH_ALT = new Set(["[", "]"]);

const isOfBrowser = (event) => {
  if (event.altKey && WITH_ALT.has(event.key)) return event.metaKey;
  return event.ctrlKey || event.metaKey || event.altKey;
};

const toggle = (id) => document.getElementById(id)?.togglePopover();
const open = (selector) => {
  const link = document.querySelector(selector);
  if (link) location.href = link.href;
};

function move(step) {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.querySelector("a, button"));
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[Math.min(Math.max(here + step, 0), rows.length - 1)];
  row?.querySelector("a, button")?.focus();
}

// In the search, the arrows move through the results.
function moveInResults(event) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...document.querySelectorAll("#find .found a, #find .found button")];
  const here = links.indexOf(document.activeElement);
  const next = event.key === "ArrowDown" ? links[here + 1] : links[here - 1];
  event.preventDefault();
  (next ?? document.getElementById("q"))?.focus();
}

// Enter in the search opens the only hit. With several, the page of the search lists them.
function openOnly(event) {
  const input = document.getElementById("q");
  if (event.key !== "Enter" || event.target !== input) return;
  const list = document.querySelector("#found .found");
  const hits = list ? [...list.querySelectorAll("a:not([data-everywhere])")] : [];
  const actions = document.querySelectorAll("#page-actions button");
  if (list?.dataset.query !== input.value.trim() || hits.length !== 1 || actions.length > 0) return;
  event.preventDefault();
  location.href = hits[0].href;
}

// To the page with the list that this one was opened from; otherwise to the last link of the path.
function goBack() {
  const from = document.referrer && new URL(document.referrer);
  if (from && from.origin === location.origin && from.pathname !== location.pathname) location.href = from.href;
  else open(".crumbs a:last-of-type");
}

function copyId() {
  const id = document.querySelector(".head [data-id]");
  if (id) navigator.clipboard.writeText(id.dataset.id);
}

function focus(id) {
  const target = document.getElementById(id);
  target?.scrollIntoView({ block: "center" });
  target?.focus();
}

export function listenToKeys({ switchTheme }) {
  const keys = {
    "?": () => toggle("keys"),
    t: switchTheme,
    j: () => move(1),
    k: () => move(-1),
    n: showNext,
    x: toggleRow,
    e: () => focus("explain"),
    r: () => focus("say"),
    y: copyId,
    "[": () => open("a[rel=prev]"),
    "]": () => open("a[rel=next]"),
    u: goBack,
  };
  document.getElementById("find")?.addEventListener("keydown", moveInResults);
  document.getElementById("find")?.addEventListener("keydown", openOnly);
  let prefix = "";
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      toggle("find");
      return;
    }
    if (isOfBrowser(event) || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
    if (prefix === "g" && PLACES[event.key]) location.href = PLACES[event.key];
    else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
    prefix = event.key === "g" ? "g" : "";
  });
}
