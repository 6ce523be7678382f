"use strict";
for (const tools of document.querySelectorAll(".tools[hidden]")) tools.hidden = false;
for (const field of document.querySelectorAll("input[data-filter]")) {
  const rows = document.querySelectorAll("#" + field.dataset.filter + " tbody tr");
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
for (const button of document.querySelectorAll("button[data-zoom]")) {
  const drawing = document.getElementById("timeline");
  const width = Number(drawing.getAttribute("width"));
  let scale = 1;
  button.addEventListener("click", () => {
    const now = drawing.getBoundingClientRect().width / width;
    scale = Math.min(6, Math.max(0.25, now * Number(button.dataset.zoom)));
    drawing.setAttribute("width", String(width * scale));
    drawing.setAttribute("preserveAspectRatio", "none");
  });
}
for (const button of document.querySelectorAll("button[data-fold]")) {
  button.addEventListener("click", () => {
    for (const part of document.querySelectorAll("details")) part.open = button.dataset.fold === "open";
  });
}
