// Buttons on pages of labs open and close all hints, or all solutions.
for (const button of document.querySelectorAll("button[data-fold]")) {
  const folds = document.querySelectorAll(`details.${button.dataset.fold}`);
  const what = button.textContent.replace("Show", "");
  button.hidden = false;
  button.addEventListener("click", () => {
    const open = button.textContent.startsWith("Show");
    for (const fold of folds) fold.open = open;
    button.textContent = (open ? "Hide" : "Show") + what;
  });
}
