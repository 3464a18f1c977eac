// Actions of the present page in the search: those whose words contain what is written. Choosing one leads to its button, and opens its
// confirmation. Nothing is done by the search itself.
function found(text) {
  const words = text.trim().toLowerCase();
  const buttons = [...document.querySelectorAll(".main .head .actions button, .main .explain button")];
  const fits = (button) => !button.closest(".sheet") && button.textContent.toLowerCase().includes(words);
  return words.length < 2 ? [] : buttons.filter(fits);
}

function entry(button) {
  const item = document.createElement("li");
  const choice = document.createElement("button");
  const kind = document.createElement("span");
  kind.className = "faint small";
  kind.textContent = " action of this page";
  choice.type = "button";
  choice.textContent = button.textContent.trim();
  choice.append(kind);
  choice.addEventListener("click", () => {
    document.getElementById("find").hidePopover();
    button.focus();
    button.popoverTargetElement?.showPopover();
  });
  item.append(choice);
  return item;
}

// The command below a form does the same as the form: it follows the fields that have a flag. An empty flag is a value by its place.
function withFlag(command, field) {
  const { flag, flagIfEmpty } = field.dataset;
  const isSwitch = field.type === "checkbox";
  const words = isSwitch ? [flag] : [flag, shellWord(field.value.trim())].filter(Boolean);
  const isGiven = isSwitch ? field.checked : field.value.trim() !== "";
  const given = isGiven ? ` ${words.join(" ")}` : flagIfEmpty ? ` ${flagIfEmpty}` : "";
  const present = flag ? command.match(` ${flag} ('[^']*'|[^ ]+)`) : null;
  return present ? command.replace(present[0], () => given) : command + given;
}

function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function followFields() {
  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form");
    const shown = form?.querySelector("[data-command]");
    if (!shown) return;
    shown.textContent = [...form.querySelectorAll("[data-flag]")].reduce(withFlag, shown.dataset.command);
  });
}

export function offerActions() {
  const list = document.getElementById("page-actions");
  const input = document.getElementById("q");
  input?.addEventListener("input", () => list.replaceChildren(...found(input.value).map(entry)));
}
