// The bar for selected rows. Without a script it is always there.
const boxes = () => [...document.querySelectorAll("input[form=selection]")];

export function toggleRow() {
  document.activeElement?.closest("tr")?.querySelector("input[form=selection]")?.click();
}

export function followSelection() {
  const bar = document.getElementById("selection");
  if (!bar) return;
  const words = bar.querySelector("[data-selected]");
  const update = () => {
    const n = boxes().filter((box) => box.checked).length;
    bar.hidden = n === 0;
    words.textContent = `${n} selected`;
  };
  document.addEventListener("change", (event) => { if (event.target.form === bar) update(); });
  // A browser that goes back restores the boxes.
  addEventListener("pageshow", update);
  update();
}
