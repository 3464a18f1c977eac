// The icon and the notifications of the browser for what needs a person. Notifications are off until a person switches them on.
const WANTED = "notify";
const SHOWN = "notified";
// A tab may still have an older list, in which a thing is missing for a moment. It is forgotten when it has been missing for so long.
const FORGET_AFTER_MS = 60_000;

const isPossible = () => "Notification" in window && "locks" in navigator && window.isSecureContext;
const isOn = () => isPossible() && Notification.permission === "granted" && read(WANTED) === "on";

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser may refuse to store; then notifications stay off.
  }
}

// The keys of things that were shown, each with the time since which it is missing; 0 while it is there.
function known() {
  try {
    return new Map(JSON.parse(read(SHOWN)) ?? []);
  } catch {
    return new Map();
  }
}

function remember(before, items) {
  const now = Date.now();
  const missing = [...before].map(([key, since]) => [key, since || now]);
  const kept = missing.filter(([, since]) => now - since < FORGET_AFTER_MS);
  const present = items.map((item) => [item.key, 0]);
  write(SHOWN, JSON.stringify([...new Map([...kept, ...present])]));
}

function raise(items) {
  const [first] = items;
  const isOne = items.length === 1;
  const heading = isOne ? first.title : `${items.length} things need you`;
  const body = isOne ? first.text : items.map((item) => item.title).join("\n");
  const icon = document.querySelector("link[rel=icon]").dataset.attention;
  const notification = new Notification(heading, { body, icon, tag: first.key });
  notification.onclick = () => {
    window.focus();
    location.href = isOne ? first.target : "/";
  };
}

// All tabs are told. The first one that has the lock shows what is new, and the others find that it was shown.
function announce(items) {
  if (!isOn()) return;
  navigator.locks.request(SHOWN, () => {
    const before = known();
    const fresh = items.filter((item) => !before.has(item.key));
    remember(before, items);
    if (fresh.length > 0) raise(fresh);
  });
}

function showIcon(items) {
  const link = document.querySelector("link[rel=icon]");
  const wanted = items.length > 0 ? link.dataset.attention : link.dataset.calm;
  if (link.getAttribute("href") !== wanted) link.setAttribute("href", wanted);
}

let newest;
let arrive;
const arrived = new Promise((resolve) => { arrive = resolve; });

export function showAttention(items) {
  newest = items;
  arrive();
  showIcon(items);
  announce(items);
}

function describe(button, note) {
  const isBlocked = Notification.permission === "denied";
  button.setAttribute("aria-pressed", String(isOn()));
  button.disabled = isBlocked;
  button.querySelector("[data-words]").textContent = isOn() ? "Notifications are on" : "Notify me in this browser";
  note.textContent = isBlocked ? "Notifications are blocked in the settings of the browser for this site." : "";
}

async function toggle() {
  if (isOn()) {
    write(WANTED, "off");
    return;
  }
  if (await Notification.requestPermission() !== "granted") return;
  // What is open now is on the page already. The service draws the icon before the first list has arrived.
  await arrived;
  remember(new Map(), newest);
  write(WANTED, "on");
}

export function offerNotifications() {
  const block = document.querySelector("[data-notify]");
  if (!block || !isPossible()) return;
  const [button, note] = [block.querySelector("button"), block.querySelector("[data-note]")];
  const update = () => describe(button, note);
  button.addEventListener("click", () => toggle().then(update));
  // Another tab has switched them.
  addEventListener("storage", update);
  update();
  block.hidden = false;
}
