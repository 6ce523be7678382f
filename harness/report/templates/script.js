"use strict";
for (const tools of document.querySelectorAll(".tools[hidden]")) tools.hidden = false;
for (const field of document.querySelectorAll("input[data-filter]")) {
  const rows = document.querySelectorAll("#" + field.dataset.filter + " tbody tr");
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
let scale = 1;
for (const button of document.querySelectorAll("button[data-zoom]")) {
  button.addEventListener("click", () => {
    scale = Math.min(6, Math.max(0.25, scale * Number(button.dataset.zoom)));
    for (const drawing of document.querySelectorAll("svg.drawing")) {
      drawing.setAttribute("width", String(drawing.viewBox.baseVal.width * scale));
      drawing.setAttribute("preserveAspectRatio", "none");
    }
  });
}
const unfolded = new Set();
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) {
    unfolded.add(part);
    part.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const part of unfolded) part.open = false;
  unfolded.clear();
});
for (const button of document.querySelectorAll("button[data-fold]")) {
  button.addEventListener("click", () => {
    for (const part of document.querySelectorAll("details")) part.open = button.dataset.fold === "open";
  });
}
