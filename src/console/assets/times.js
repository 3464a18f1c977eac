// Times are absolute in the markup. This adds how long ago they were, once a minute.
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
const format = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

export function relativeTime(at, now = Date.now()) {
  const secs = Math.round((at - now) / 1000);
  const [unit, length] = UNITS.find(([, length]) => Math.abs(secs) >= length) ?? ["second", 1];
  if (unit === "second" && Math.abs(secs) < 10) return secs <= 0 ? "just now" : "in a moment";
  // Sentences end with a full stop of their own.
  return format.format(Math.trunc(secs / length), unit).replace(/\./g, "");
}

function refresh() {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    time.textContent = relativeTime(Date.parse(time.dateTime));
  }
}

export function keepTimesFresh() {
  refresh();
  setInterval(refresh, 60_000);
  document.addEventListener("htmx:afterSwap", refresh);
}
