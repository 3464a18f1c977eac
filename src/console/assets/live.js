// What happens, without moving what is being read: new things announce themselves, and the reader fetches them.
// One stream per browser: a shared worker holds it for all tabs.
import { showAttention } from "./notices.js";

const PATIENCE = 5000;
const STREAM_CHARS = 2000;
const QUIET_KINDS = new Set(["turn.progress"]);

function connect(onMessage) {
  const script = new URL("./stream.js", import.meta.url);
  if (window.SharedWorker) {
    const worker = new SharedWorker(script, { type: "module", name: "dalsegno" });
    worker.port.onmessage = (message) => onMessage(message.data);
    worker.port.start();
    addEventListener("pagehide", () => worker.port.postMessage("close"));
  } else {
    Promise.all([import(script), import("./attention.js")]).then(([{ follow }, { AttentionWatch }]) => {
      const watch = new AttentionWatch(onMessage);
      watch.begin();
      follow((message) => {
        if (message.kind === "event") watch.seen(message.event);
        onMessage(message);
      });
    });
  }
}

// In the time zone of the pages, which the browser may not have.
const clock = (at) => {
  const timeZone = document.getElementById("main").dataset.zone;
  return new Date(at).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone });
};

/// Shows the state of the connection, in the rail and, after some time, above the content.
class Connection {
  constructor() {
    this.line = document.getElementById("feed-line");
    this.banner = document.getElementById("banner");
    this.lastAt = Date.now();
  }

  opened() {
    this.line.hidden = false;
    this.line.querySelector("span").textContent = "Live";
    clearTimeout(this.timer);
    if (this.isBehind) this.missed();
    else if (this.lostAt && this.banner.firstChild) {
      this.gap = { from: this.lastAt, to: Date.now(), n: 0 };
      this.showBack();
    }
    this.lostAt = undefined;
  }

  lost() {
    if (this.lostAt) return;
    this.lostAt = Date.now();
    this.line.hidden = false;
    this.line.querySelector("span").textContent = `Reconnecting, last event ${clock(this.lastAt)}`;
    this.timer = setTimeout(() => {
      this.show("The connection to the service is interrupted. The page can be read, and shows what has happened as soon as it is back.");
    }, PATIENCE);
  }

  event(at, isNews) {
    if (isNews && this.gap && at > this.gap.from && at <= this.gap.to) {
      this.gap.n += 1;
      this.showBack();
    }
    this.lastAt = Date.now();
  }

  showBack() {
    const { to, n } = this.gap;
    const meanwhile = n === 1 ? "1 event arrived" : `${n} events arrived`;
    this.show(`Back since ${clock(to)}${n > 0 ? `, ${meanwhile} meanwhile` : ""}.`);
  }

  /// Says that events are missing, until the page is reloaded.
  missed() {
    this.gap = undefined;
    this.isBehind = true;
    this.show("The connection was interrupted for so long that events are missing on this page. Reload it.");
  }

  show(text) {
    const block = document.createElement("p");
    block.className = "banner";
    block.textContent = text;
    this.banner.replaceChildren(block);
  }
}

function pill() {
  const button = document.createElement("button");
  button.className = "fresh";
  button.type = "button";
  button.hidden = true;
  button.addEventListener("click", () => location.reload());
  document.getElementById("main").prepend(button);
  return button;
}

function progress(event) {
  const row = document.querySelector(`[data-task="${CSS.escape(event.task_id ?? "")}"] [data-stream]`);
  if (!row) return;
  const { text = "", cut = false, tool } = event.data;
  // Each event has what is new since the one before. The box shows the newest end.
  row.textContent = (row.textContent + text + (cut ? " … " : "")).slice(-STREAM_CHARS);
  if (tool && !text) row.textContent = `uses ${tool}`;
  row.closest("[hidden]")?.removeAttribute("hidden");
}

export function followChanges() {
  const main = document.getElementById("main");
  // Pages without a rail have no caller.
  if (!main || !document.getElementById("feed-line")) return;
  const watched = (main.dataset.watch ?? "").split(" ").filter(Boolean);
  if (watched.length === 0) {
    connect((message) => { if (message.kind === "attention") showAttention(message.items); });
    return;
  }
  const connection = new Connection();
  const button = pill();
  // The stream may have begun before the page was read; without this mark, it begins now.
  const readUpTo = main.dataset.feed === undefined ? undefined : Number(main.dataset.feed);
  const seen = new Set();
  const concerns = (event) => watched.includes("all")
    || watched.some((id) => [event.task_id, event.session_id, event.campaign_id].includes(id));
  connect((message) => {
    if (message.kind === "open") connection.opened();
    else if (message.kind === "lost") connection.lost();
    else if (message.kind === "attention") showAttention(message.items);
    else if (message.kind === "gap") {
      // A page that was read after the gap misses nothing.
      if (message.isReplay ? !(message.id > readUpTo) : readUpTo >= message.id) return;
      connection.missed();
      button.textContent = "Reload";
      button.hidden = false;
    } else {
      const event = message.event;
      if (seen.has(event.id) || (message.isReplay && !(event.id > readUpTo))) return;
      seen.add(event.id);
      connection.event(Date.parse(event.created_at), !QUIET_KINDS.has(event.kind));
      if (event.kind === "turn.progress") progress(event);
      if (QUIET_KINDS.has(event.kind) || !concerns(event)) return;
      button.dataset.n = Number(button.dataset.n ?? 0) + 1;
      button.textContent = `${button.dataset.n} new`;
      button.hidden = false;
    }
  });
}
