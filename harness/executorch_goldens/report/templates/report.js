"use strict";
(() => {
  const main = document.getElementById("main");
  let report, pages;

  /** Return the text that an element of the file holds, compressed and in base64. */
  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (each) => each.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };

  /** Return a new element; words are always text. */
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const cells = () =>
    report.cells.map(([release, target, name, verdict, accepted, reason, pass, numerics, quantities]) => ({
      release, target, name, verdict, accepted, reason, pass, numerics, quantities,
      address: `cell/${release}/${target}/${name}`,
    }));

  // The grid

  const chosen = { text: "", verdicts: new Set(), release: "", target: "" };

  const shown = (cell) =>
    (!chosen.verdicts.size || chosen.verdicts.has(cell.verdict)) &&
    (!chosen.release || cell.release === chosen.release) &&
    (!chosen.target || cell.target === chosen.target) &&
    chosen.text.split(/\s+/).every((word) => cell.words.includes(word));

  const select = (label, key, values, update) => {
    const made = element("select", { "aria-label": label }, element("option", { value: "" }, `all ${label}`));
    for (const value of values) made.append(element("option", { value }, value));
    made.value = chosen[key];
    made.addEventListener("change", () => { chosen[key] = made.value; update(); });
    return made;
  };

  const filters = (all, update) => {
    const search = element("input", { type: "search", id: "search", "aria-label": "Search cells, reasons and passes",
      placeholder: "cell, reason or pass ( / )" });
    search.value = chosen.text;
    search.addEventListener("input", () => { chosen.text = search.value.toLowerCase(); update(); });
    const verdicts = element("div", { class: "filters", role: "group", "aria-label": "Verdicts" });
    for (const verdict of Object.keys(report.signs)) {
      const number = all.filter((cell) => cell.verdict === verdict).length;
      if (!number) continue;
      const button = element("button", { type: "button", "aria-pressed": chosen.verdicts.has(verdict), "data-verdict": verdict },
        element("span", { class: `verdict v-${verdict}`, "aria-hidden": "true" }, report.signs[verdict]), ` ${verdict} ${number}`);
      button.addEventListener("click", () => {
        chosen.verdicts.delete(verdict) || chosen.verdicts.add(verdict);
        button.setAttribute("aria-pressed", chosen.verdicts.has(verdict));
        update();
      });
      verdicts.append(button);
    }
    const targets = [...new Set(all.map((cell) => cell.target))].sort();
    return [element("div", { class: "filters" }, search, select("releases", "release", report.releases, update),
      select("targets", "target", targets, update)), verdicts];
  };

  /** Return the rows of a target: one for each case, with the cell of each release or a gap. */
  const body = (target, of) => {
    const made = element("tbody");
    made.append(element("tr", { class: "target" }, element("th", { scope: "rowgroup", colspan: report.releases.length + 1 }, target)));
    const rows = Map.groupBy(of, (cell) => cell.name);
    for (const [name, row] of [...rows].sort(([one], [other]) => one.localeCompare(other))) {
      const line = element("tr", {}, element("th", { scope: "row" }, name));
      for (const release of report.releases) {
        const cell = row.find((each) => each.release === release);
        const place = element("td");
        if (cell) {
          place.append(element("a", {
            href: `#${encodeURI(cell.address)}`, tabindex: "-1", title: `${release} ${cell.verdict}${cell.reason ? ": " + cell.reason : ""}`,
            class: `v-${cell.verdict}${cell.accepted && cell.verdict !== "stable" ? " known" : ""}`,
            "aria-label": `${target}/${name} on ${release}: ${cell.verdict}`,
          }, report.signs[cell.verdict] ?? "?"));
        }
        line.append(place);
      }
      made.append(line);
    }
    return made;
  };

  const grid = () => {
    const all = cells();
    for (const cell of all) {
      cell.words = [cell.release, cell.target + "/" + cell.name, cell.verdict, cell.reason, cell.pass].join(" ").toLowerCase();
    }
    const heading = element("h1", { tabindex: "-1" });
    const table = element("table", { class: "grid" });
    const update = () => {
      const some = all.filter(shown);
      heading.textContent = some.length === all.length ? `${all.length} cells` : `${some.length} of ${all.length} cells`;
      document.getElementById("said").textContent = heading.textContent;
      const head = element("tr", {}, element("th", { scope: "col" }, "case"));
      for (const release of report.releases) head.append(element("th", { scope: "col" }, release));
      const targets = Map.groupBy(some, (cell) => cell.target);
      table.replaceChildren(element("caption", { class: "unseen" }, "Verdicts by case and release; arrow keys move"),
        element("thead", {}, head), ...[...targets].sort(([one], [other]) => one.localeCompare(other)).map(([target, of]) => body(target, of)));
      // One stop for the tabulator; arrows move between the cells.
      table.querySelector("a")?.setAttribute("tabindex", "0");
    };
    table.addEventListener("keydown", moved);
    main.replaceChildren(heading, ...filters(all, update), table);
    update();
  };

  const moved = (event) => {
    const from = event.target.closest("td");
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!from || !steps) return;
    event.preventDefault();
    const rows = [...event.currentTarget.querySelectorAll("tbody tr:not(.target)")];
    let row = rows.indexOf(from.parentElement), column = from.cellIndex, link;
    do {
      column += steps[0];
      row += steps[1];
      link = rows[row]?.cells[column]?.querySelector("a");
    } while (!link && rows[row]?.cells[column]?.tagName === "TD");
    if (!link) return;
    event.target.setAttribute("tabindex", "-1");
    link.setAttribute("tabindex", "0");
    link.focus();
  };

  // A green cell, of which there is no page

  const small = (cell) => {
    const row = (name, value) => element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "figure" }, value));
    const table = element("table");
    const [difference, tolerance, used, sqnr] = cell.numerics;
    if (difference !== null) table.append(row("largest error, of the largest value", String(difference)));
    if (tolerance !== null) table.append(row("tolerance, of the largest value", String(tolerance)));
    if (used !== null) table.append(row("of its tolerance an element takes", String(used)));
    if (sqnr !== null) table.append(row("SQNR of the worst output against the float model, dB", String(sqnr)));
    cell.quantities.forEach((number, at) => number !== null && table.append(row(report.quantities[at], number.toLocaleString("en"))));
    main.replaceChildren(
      element("p", {}, element("a", { href: "#cells" }, "All cells")),
      element("h1", { tabindex: "-1" }, `${cell.target}/${cell.name} `, element("small", {}, `on ExecuTorch ${cell.release}`)),
      element("p", {}, element("span", { class: `verdict v-${cell.verdict}` }, cell.verdict)),
      element("div", { class: "scroll" }, table));
  };

  // Addresses

  let last = "cells";

  const show = async () => {
    const address = decodeURIComponent(location.hash.slice(1)) || "cells";
    if (address === "main") return;
    const number = pages.get(address);
    const cell = cells().find((each) => each.address === address);
    if (address === "cells") grid();
    else if (number !== undefined) main.innerHTML = await unpacked(`page-${number}`);
    else if (cell) small(cell);
    else main.replaceChildren(element("h1", { tabindex: "-1" }, "Nothing is at this address"), element("p", {}, element("a", { href: "#cells" }, "All cells")));
    for (const link of document.querySelectorAll("nav a")) {
      if (decodeURIComponent(link.hash.slice(1)) === address) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const heading = main.querySelector("h1");
    document.title = `${heading.textContent} · Goldens`;
    if (address === "cells" && last.startsWith("cell/")) back(last);
    else { scrollTo(0, 0); heading.focus(); }
    last = address;
    document.documentElement.dataset.shown = address;
  };

  /** Go back to the cell of the grid whose page was shown. */
  const back = (address) => {
    const link = main.querySelector(`.grid a[href="${("#" + encodeURI(address)).replaceAll(/["\\]/g, "\\$&")}"]`);
    if (!link) return;
    main.querySelector('.grid a[tabindex="0"]').setAttribute("tabindex", "-1");
    link.setAttribute("tabindex", "0");
    link.focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    if (event.key === "/" && document.getElementById("search")) {
      event.preventDefault();
      document.getElementById("search").focus();
    } else if (event.key === "Escape" && last !== "cells") location.hash = "#cells";
  });

  document.addEventListener("click", async (event) => {
    if (event.target.id === "theme") theme(root.dataset.theme === "dark" ? "light" : "dark");
    if (!event.target.matches(".copy")) return;
    const words = event.target.parentElement.querySelector("code");
    getSelection().selectAllChildren(words);
    try {
      await navigator.clipboard.writeText(words.textContent);
    } catch {
      document.execCommand("copy");
    }
    document.getElementById("said").textContent = "copied";
    event.target.textContent = "Copied";
  });

  const root = document.documentElement;
  const theme = (name) => {
    root.dataset.theme = name;
    document.getElementById("theme").setAttribute("aria-pressed", name === "dark");
    try { localStorage.setItem("goldens-theme", name); } catch { /* A browser may keep nothing for a file. */ }
  };
  let kept = null;
  try { kept = localStorage.getItem("goldens-theme"); } catch { /* As above. */ }
  theme(kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));

  addEventListener("hashchange", show);
  unpacked("data").then((text) => {
    report = JSON.parse(text);
    pages = new Map(report.pages.map((address, number) => [address, number]));
    return show();
  });
})();
