"use strict";
// Filters of the table of operators, kept in the address. Without this script each operator can be opened by hand.
addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("operators-filters");
  if (!form) return;
  const operators = [...document.querySelectorAll("#operators > details")];
  const count = document.getElementById("operators-count");
  const [targets, releases] = ["target", "release"].map((name) => [...form.elements[name].options].slice(1).map((option) => option.value));
  for (const cell of document.querySelectorAll("#operators td[colspan]")) cell.dataset.span = cell.colSpan;

  /** Show the cell of the chosen release, or all; return whether one of them has what is chosen. */
  const row = (line, { release, outcome }) => {
    let place = 0, found = false;
    for (const cell of line.cells) {
      if (cell.tagName !== "TD") continue;
      const span = Number(cell.dataset.span ?? 1);
      const within = releases.slice(place, place + span);
      place += span;
      cell.hidden = release !== "" && !within.includes(release);
      cell.colSpan = release ? 1 : span;
      found ||= !cell.hidden && (outcome ? cell.classList.contains(outcome) : cell.classList.length > 0);
    }
    return found;
  };

  /** Show the rows and examples of an operator that have what is chosen; return whether there are any. */
  const update = (operator, chosen) => {
    if (!operator.id.toLowerCase().includes(chosen.operator.trim().toLowerCase())) return false;
    const [head, ...lines] = operator.querySelector("table").rows;
    [...head.cells].slice(1).forEach((cell, place) => { cell.hidden = chosen.release !== "" && releases[place] !== chosen.release; });
    for (const line of lines) line.hidden = !row(line, chosen) || (chosen.target !== "" && line.cells[0].textContent.trim() !== chosen.target);
    for (const example of operator.querySelectorAll("li")) {
      const on = [...example.querySelectorAll("span")].some(({ dataset }) =>
        (!chosen.target || dataset.t.split(" ").includes(String(targets.indexOf(chosen.target)))) &&
        (!chosen.release || dataset.r.includes(releases.indexOf(chosen.release))));
      example.hidden = !on || (chosen.outcome !== "" && example.dataset.outcome !== chosen.outcome);
    }
    return lines.some((line) => !line.hidden);
  };

  const filter = () => {
    const chosen = Object.fromEntries(new FormData(form));
    const found = operators.filter((operator) => !(operator.hidden = !update(operator, chosen)));
    count.textContent = `${found.length} of ${operators.length} operators`;
    if (found.length === 1) found[0].open = true;
    const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
    history.replaceState(null, "", (query.size ? `?${query}` : location.pathname) + location.hash);
  };

  /** Open the operator that the address names. */
  const open = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!operators.includes(named)) return;
    named.open = true;
    named.scrollIntoView();
  };

  for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value;
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The event of a reset comes before it.
  form.querySelector("[type=reset]").addEventListener("click", (event) => {
    event.preventDefault();
    form.reset();
    filter();
  });
  addEventListener("hashchange", open);
  filter();
  open();
});
