// What is new since the last visit of a page. The browser keeps the newest time that it has shown, for each page.
const key = `visit ${location.pathname}`;
const rows = () => [...document.querySelectorAll("[data-at]")];
const newest = (start) => rows().reduce((last, row) => Math.max(last, Date.parse(row.dataset.at)), start);

function read() {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

function store(before) {
  try {
    localStorage.setItem(key, JSON.stringify({ newest: newest(before?.newest ?? 0), at: Date.now() }));
  } catch {
    // A browser may refuse to store; then nothing is marked.
  }
}

export function showNext() {
  const fresh = document.querySelector(".fresh:not([hidden])");
  if (fresh) {
    fresh.click();
    return;
  }
  const marked = [...document.querySelectorAll(".new")];
  const here = marked.findIndex((row) => row.contains(document.activeElement));
  const row = marked[(here + 1) % marked.length];
  row?.scrollIntoView({ block: "center" });
  row?.querySelector("a, button")?.focus();
}

export function markVisits() {
  const before = read();
  const marked = before ? rows().filter((row) => Date.parse(row.dataset.at) > before.newest) : [];
  for (const row of marked) row.classList.add("new");
  if (marked.length > 0) {
    const at = new Date(before.at);
    // In the time zone of the pages, which the browser may not have.
    const timeZone = document.getElementById("main").dataset.zone;
    const day = (moment) => moment.toLocaleDateString("en", { timeZone });
    const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone };
    const isToday = day(at) === day(new Date());
    const words = isToday ? at.toLocaleTimeString("en", time) : at.toLocaleString("en-GB", { day: "numeric", month: "short", ...time });
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn quiet slim visit";
    button.textContent = `${marked.length} new since your last visit, ${words}`;
    button.addEventListener("click", showNext);
    document.querySelector(".crumbs")?.append(button);
  }
  // A filtered list does not show everything that is new.
  if (!location.search) addEventListener("pagehide", () => store(before));
}
