// The stream of events, as a shared worker for all tabs of a browser, or in a page that has none.
// The browser reconnects with the id of the last event, so nothing is missing or repeated. After too long a time the service says that
// events are missing.
import { AttentionWatch } from "./attention.js";

export function follow(tell, after) {
  const source = new EventSource(after === undefined ? "/events" : `/events?after=${after}`);
  let last = after;
  source.addEventListener("open", () => tell({ kind: "open" }));
  source.addEventListener("begin", (message) => {
    last = message.lastEventId;
    if (JSON.parse(message.data).has_gap) tell({ kind: "gap", id: Number(last) });
  });
  source.addEventListener("change", (message) => {
    last = message.lastEventId;
    tell({ kind: "event", event: JSON.parse(message.data) });
  });
  source.addEventListener("error", () => {
    tell({ kind: "lost" });
    // A refused request is not repeated by the browser: the sign-in may have ended, or the service is starting.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(tell, last), 3000);
  });
  return source;
}

if (typeof SharedWorkerGlobalScope !== "undefined") {
  const ports = new Set();
  // For pages that were read before they have joined.
  const recent = [];
  let state;
  let gap;
  let source;
  let attention;
  const tellAll = (message) => {
    for (const port of ports) port.postMessage(message);
  };
  const watch = new AttentionWatch((message) => {
    attention = message;
    tellAll(message);
  });
  const tell = (message) => {
    if (message.kind === "event") {
      recent.push(message.event);
      if (recent.length > 200) recent.shift();
      watch.seen(message.event);
    } else if (message.kind === "gap") {
      gap = message;
      watch.askSoon();
    } else state = message;
    tellAll(message);
  };
  self.onconnect = ({ ports: [port] }) => {
    ports.add(port);
    port.onmessage = () => ports.delete(port);
    source ??= follow(tell);
    watch.begin();
    if (state) port.postMessage(state);
    if (attention) port.postMessage(attention);
    if (gap) port.postMessage({ ...gap, isReplay: true });
    for (const event of recent) port.postMessage({ kind: "event", event, isReplay: true });
  };
}
