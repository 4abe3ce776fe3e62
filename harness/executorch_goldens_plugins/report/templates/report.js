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

  const chosen = { text: "", verdicts: new Set(), release: "", target: "", stable: false };

  /** Return the address of the cells with what is chosen of them. */
  const home = () => {
    const query = new URLSearchParams();
    for (const key of ["text", "release", "target"]) if (chosen[key]) query.set(key, chosen[key]);
    for (const verdict of chosen.verdicts) query.append("verdict", verdict);
    if (chosen.stable) query.set("stable", "shown");
    return query.size ? `cells?${query}` : "cells";
  };

  /** Choose what an address says. */
  const choose = (words) => {
    const query = new URLSearchParams(words);
    for (const key of ["text", "release", "target"]) chosen[key] = query.get(key) ?? "";
    chosen.verdicts = new Set(query.getAll("verdict"));
    chosen.stable = query.has("stable");
  };

  const shown = (cell) =>
    (!chosen.verdicts.size || chosen.verdicts.has(cell.verdict)) &&
    (!chosen.release || cell.release === chosen.release) &&
    (!chosen.target || cell.target === chosen.target) &&
    chosen.text.toLowerCase().split(/\s+/).every((word) => cell.words.includes(word));

  const words = (verdict) => report.words[verdict] ?? verdict;

  /** Whether nobody has to look at a cell: the last of the signs is the one of these. */
  const quiet = (cell) => cell.verdict === Object.keys(report.signs).at(-1);

  /** Leave out the rows that are stable on every release, where a reader asks for nothing in particular. */
  const folded = (some) => {
    if (chosen.stable || chosen.text || chosen.verdicts.size || report.compares && some.length <= 40) return [some, 0];
    const rows = Map.groupBy(some, (cell) => `${cell.target}/${cell.name}`);
    const kept = some.filter((cell) => rows.get(`${cell.target}/${cell.name}`).some((each) => !quiet(each)));
    return [kept, some.length - kept.length];
  };

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
    search.addEventListener("input", () => { chosen.text = search.value; update(); });
    const verdicts = element("div", { class: "filters", role: "group", "aria-label": "Verdicts" });
    for (const verdict of Object.keys(report.signs)) {
      const number = all.filter((cell) => cell.verdict === verdict).length;
      if (!number) continue;
      const button = element("button", { type: "button", "aria-pressed": chosen.verdicts.has(verdict), "data-verdict": verdict },
        element("span", { class: `verdict v-${verdict.replaceAll(" ", "-")}`, "aria-hidden": "true" }, report.signs[verdict]), ` ${words(verdict)} ${number}`);
      button.addEventListener("click", () => {
        chosen.verdicts.delete(verdict) || chosen.verdicts.add(verdict);
        button.setAttribute("aria-pressed", chosen.verdicts.has(verdict));
        update();
      });
      verdicts.append(button);
    }
    const targets = [...new Set(all.map((cell) => cell.target))].sort();
    const releases = report.releases.length > 1 ? [select("releases", "release", report.releases, update)] : [];
    return [element("div", { class: "filters" }, search, ...releases, select("targets", "target", targets, update)), verdicts];
  };

  /** Return what rows stand under: their kind in a comparison, else their target. */
  const above = (cell) => report.compares ? words(cell.verdict) : cell.target;

  /** Return the rows of a target or kind: one for each case, with the cell of each release or a gap. */
  const body = (title, of) => {
    const made = element("tbody");
    made.append(element("tr", { class: "target" }, element("th", { scope: "rowgroup", colspan: report.releases.length + 2 }, title)));
    const rows = Map.groupBy(of, (cell) => report.compares ? `${cell.target}/${cell.name}` : cell.name);
    for (const [name, row] of [...rows].sort(([one], [other]) => one.localeCompare(other))) {
      const line = element("tr", {}, element("th", { scope: "row" }, name));
      for (const release of report.releases) {
        const cell = row.find((each) => each.release === release);
        const place = element("td");
        if (cell) {
          place.append(element("a", {
            href: `#${encodeURI(cell.address)}`, tabindex: "-1", title: `${report.compares ? "" : `${release} `}${words(cell.verdict)}${cell.reason ? ": " + cell.reason : ""}`,
            class: `v-${cell.verdict.replaceAll(" ", "-")}${cell.accepted && !quiet(cell) && !report.compares ? " accepted" : ""}`,
            "aria-label": `${cell.target}/${cell.name}${report.compares ? "" : ` on ${release}`}: ${words(cell.verdict)}`,
          }, report.signs[cell.verdict] ?? "?"));
        }
        line.append(place);
      }
      // Of one release there is room to say why.
      if (report.releases.length === 1 && !quiet(row[0])) {
        const why = [report.compares ? "" : row[0].pass, row[0].reason].filter(Boolean).join(": ");
        line.append(element("td", { class: "why" }, why));
      }
      made.append(line);
    }
    return made;
  };

  /** Return every cell with the words that a search finds it by, in the order of the grid. */
  const searched = () => {
    const all = cells();
    for (const cell of all) {
      cell.words = [cell.release, cell.target + "/" + cell.name, words(cell.verdict), cell.reason, cell.pass].join(" ").toLowerCase();
    }
    const ranks = report.compares ? Object.keys(report.signs) : [];
    return all.sort((one, other) => ranks.indexOf(one.verdict) - ranks.indexOf(other.verdict) ||
      one.target.localeCompare(other.target) || one.name.localeCompare(other.name));
  };

  const grid = async () => {
    const all = searched();
    const opening = element("div");
    opening.innerHTML = await unpacked(`page-${pages.get("home")}`);
    const heading = element("h2", { id: "count" });
    const table = element("table", { class: "grid" });
    const after = element("div", { class: "after" });
    const update = () => {
      const some = all.filter(shown);
      const [kept, away] = folded(some);
      heading.textContent = some.length === all.length ? `${all.length} cells` : `${some.length} of ${all.length} cells`;
      document.getElementById("said").textContent = heading.textContent;
      const head = element("tr", {}, element("th", { scope: "col" }, "case"));
      for (const release of report.releases) head.append(element("th", { scope: "col" }, report.compares ? "kind" : release));
      const parts = Map.groupBy(kept, above);
      table.replaceChildren(element("caption", { class: "unseen" }, "Verdicts by case and release; arrow keys move"),
        element("thead", {}, head), ...[...parts].map(([title, of]) => body(title, of)));
      table.hidden = !kept.length;
      after.replaceChildren();
      if (!some.length) after.append(nothing(again));
      if (away) after.append(unfold(away, update));
      // One stop for the tabulator; arrows move between the cells.
      table.querySelector("a")?.setAttribute("tabindex", "0");
      if (document.documentElement.dataset.shown === "cells") history.replaceState(null, "", `#${home()}`);
    };
    const again = () => { choose(""); history.replaceState(null, "", "#cells"); return grid(); };
    table.addEventListener("keydown", moved);
    main.replaceChildren(opening, ...(all.length ? [heading, ...filters(all, update), table, after] : []));
    update();
  };

  const nothing = (again) => {
    const button = element("button", { type: "button" }, "Clear search and filters");
    button.addEventListener("click", again);
    const words = chosen.text ? `No cell matches “${chosen.text}”` : "No cell matches";
    const more = chosen.verdicts.size || chosen.release || chosen.target ? " with these filters." : ".";
    return element("p", { class: "nothing" }, words + more, " ", button);
  };

  const unfold = (number, update) => {
    const button = element("button", { type: "button", id: "unfold" }, `Show ${number} ${words(Object.keys(report.signs).at(-1))} ${number === 1 ? "cell" : "cells"}`);
    button.addEventListener("click", () => { chosen.stable = true; update(); });
    return button;
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
    if (!cell.quantities.length) table.append(row("quantities", `its ${report.held} has none, or is not in this checkout`));
    main.replaceChildren(
      element("h1", { tabindex: "-1" }, `${cell.target}/${cell.name} `, element("small", {}, report.compares ? "" : `on ExecuTorch ${cell.release}`)),
      element("p", {}, element("span", { class: `verdict v-${cell.verdict}` }, words(cell.verdict))),
      element("div", { class: "scroll" }, table));
  };

  /** Set links to the page before and after this one above it. */
  const beside = (address) => {
    let all;
    if (address.startsWith("cell/")) {
      const here = cells().find((each) => each.address === address);
      all = searched().filter((cell) => cell.address === address || shown(cell) && (!quiet(cell) || here && quiet(here)));
      all = all.map((cell) => cell.address);
    } else if (address.startsWith("cause/")) all = [...pages.keys()].filter((each) => each.startsWith("cause/"));
    else return;
    const at = all.indexOf(address);
    const links = element("nav", { class: "beside", "aria-label": "Beside this page" },
      element("a", { href: `#${home()}` }, address.startsWith("cell/") ? "All cells" : "Overview"));
    for (const [words, to, rel] of [["← Previous", all[at - 1], "prev"], ["Next →", all[at + 1], "next"]]) {
      links.append(to === undefined ? element("span", { class: "quiet" }, words) : element("a", { href: `#${encodeURI(to)}`, rel }, words));
    }
    links.append(element("span", { class: "quiet" }, `${at + 1} of ${all.length}`));
    main.prepend(links);
  };

  // Pictures: an element is marked on all sides, with its exact values below

  const mark = (pictures, number) => {
    const squares = [...pictures.querySelectorAll(".heat")].map((heat) => heat.querySelectorAll("g")[number]);
    if (!squares.length || squares.includes(undefined)) return;
    for (const each of pictures.querySelectorAll(".heat g.here")) each.classList.remove("here");
    for (const each of squares) each.classList.add("here");
    pictures.dataset.at = number;
    const titles = squares.map((each) => each.querySelector("title").textContent.split(" = "));
    const sides = [...pictures.querySelectorAll("figure")].map((figure, at) => `${figure.dataset.title} ${titles[at][1]}`);
    pictures.nextElementSibling.textContent = `${titles[0][0]}: ${sides.join(", ")}`;
  };

  const prepare = () => {
    for (const pictures of main.querySelectorAll(".pictures:has(.heat)")) {
      const point = (event) => {
        const square = event.target.closest(".heat g");
        if (square) mark(pictures, [...square.parentElement.querySelectorAll("g")].indexOf(square));
      };
      pictures.addEventListener("pointerover", point);
      pictures.addEventListener("click", point);
      pictures.addEventListener("keydown", (event) => {
        const heat = event.target.closest(".heat");
        const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -heat?.dataset.across, ArrowDown: +heat?.dataset.across }[event.key];
        if (!heat || !step) return;
        event.preventDefault();
        mark(pictures, Math.max(0, Math.min(heat.querySelectorAll("g").length - 1, Number(pictures.dataset.at ?? -step) + step)));
      });
    }
    // A timeline begins at the pass that diverges.
    const first = main.querySelector(".timeline .step.first");
    if (first) {
      const timeline = first.closest(".timeline"), frame = timeline.getBoundingClientRect(), place = first.getBoundingClientRect();
      timeline.scrollLeft += place.left - frame.left - (frame.width - place.width) / 2;
      timeline.scrollTop += place.top - frame.top - (frame.height - place.height) / 2;
    }
  };

  // Addresses

  let last = "cells";
  const title = document.title;

  const show = async () => {
    const [place, query] = location.hash.slice(1).split("?");
    const address = decodeURIComponent(place) || "cells";
    if (address === "main") return;
    const number = pages.get(address);
    const cell = cells().find((each) => each.address === address);
    if (address === "cells") {
      choose(query);
      await grid();
    } else if (number !== undefined) main.innerHTML = await unpacked(`page-${number}`);
    else if (cell) small(cell);
    else main.replaceChildren(element("h1", { tabindex: "-1" }, "Nothing is at this address"), element("p", {}, element("a", { href: "#cells" }, "All cells")));
    beside(address);
    prepare();
    for (const link of document.querySelectorAll("header nav a")) {
      if (decodeURIComponent(link.hash.slice(1)) === address) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const heading = main.querySelector("h1");
    document.title = `${heading.textContent} · ${title}`;
    if (address === "cells" && last.startsWith("cell/")) back(last);
    else { scrollTo(0, 0); heading.focus(); }
    last = address;
    document.documentElement.dataset.shown = address;
  };

  /** Go back to the cell of the grid whose page was shown. */
  const back = (address) => {
    const link = main.querySelector(`.grid a[href="${("#" + encodeURI(address)).replaceAll(/["\\]/g, "\\$&")}"]`);
    if (!link) { scrollTo(0, 0); main.querySelector("h1").focus(); return; }
    main.querySelector('.grid a[tabindex="0"]').setAttribute("tabindex", "-1");
    link.setAttribute("tabindex", "0");
    link.focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    if (event.key === "/" && document.getElementById("search")) {
      event.preventDefault();
      document.getElementById("search").focus();
    } else if (event.key === "Escape" && last !== "cells") location.hash = `#${home()}`;
    else if (event.key === "n" || event.key === "p") main.querySelector(`.beside a[rel=${event.key === "n" ? "next" : "prev"}]`)?.click();
  });

  document.addEventListener("click", async (event) => {
    if (event.target.id === "theme") keep(isDark() ? "light" : "dark");
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

  // The theme: the system's until a reader presses the button

  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const pressed = () => document.getElementById("theme").setAttribute("aria-pressed", isDark());
  const keep = (name) => {
    root.dataset.theme = name;
    try { localStorage.setItem("goldens-theme", name); } catch { /* A browser may keep nothing for a file. */ }
    pressed();
  };
  try {
    const kept = localStorage.getItem("goldens-theme");
    if (kept) root.dataset.theme = kept;
  } catch { /* As above. */ }
  system.addEventListener("change", pressed);
  pressed();

  addEventListener("hashchange", show);
  unpacked("data").then((text) => {
    report = JSON.parse(text);
    pages = new Map(report.pages.map((address, number) => [address, number]));
    return show();
  });
})();
