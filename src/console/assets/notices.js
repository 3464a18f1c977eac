// The icon and the notifications of the browser for what needs a person. Notifications are off until a person switches them on.
const WANTED = "notify";
const SHOWN = "notified";

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

function known() {
  try {
    return new Set(JSON.parse(read(SHOWN)) ?? []);
  } catch {
    return new Set();
  }
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
    write(SHOWN, JSON.stringify(items.map((item) => item.key)));
    if (fresh.length > 0) raise(fresh);
  });
}

function showIcon(items) {
  const link = document.querySelector("link[rel=icon]");
  const wanted = items.length > 0 ? link.dataset.attention : link.dataset.calm;
  if (link.getAttribute("href") !== wanted) link.setAttribute("href", wanted);
}

let newest = [];

export function showAttention(items) {
  newest = items;
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
  // What is open now is on the page already.
  write(SHOWN, JSON.stringify(newest.map((item) => item.key)));
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
