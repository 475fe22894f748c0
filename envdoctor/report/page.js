"use strict";
// Folding, search, and tables of more rows than a browser shows at once. All text goes through textContent.

/** Show those rows of a table that stand in the page. */
function shortTable(section) {
  const rows = Array.from(section.querySelectorAll("tbody tr"));
  return (query) => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(query);
      shown += row.hidden ? 0 : 1;
    }
    return [shown, rows.length];
  };
}

/** Show of a long table what is in view: its rows are in a list, few kinds of cells beside them. */
function longTable(section, data) {
  const region = section.querySelector(".scroll");
  const body = section.querySelector("tbody");
  const height = body.rows[0].getBoundingClientRect().height;
  const words = data.kinds.map((cells) => cells.map((cell) => cell[0]).join("\n").toLowerCase());
  let chosen = data.rows.map((_, index) => index);

  function space() {
    const part = document.createElement("tbody");
    part.className = "space";
    part.setAttribute("aria-hidden", "true");
    part.insertRow().insertCell().colSpan = data.columns;
    return part;
  }
  const above = space(), below = space();
  body.before(above);
  body.after(below);

  function rowOf(index) {
    const [name, kind] = data.rows[index];
    const row = document.createElement("tr");
    row.setAttribute("aria-rowindex", String(index + 2));
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = head.title = name;
    row.append(head);
    for (const [text, odd] of data.kinds[kind]) {
      const cell = row.insertCell();
      cell.textContent = odd ? "\u2260 " + text : text;
      cell.title = text;
      cell.className = odd ? "odd" : "";
    }
    return row;
  }

  function draw(whole) {
    const count = whole ? chosen.length : Math.ceil(region.clientHeight / height) + 20;
    const last = Math.max(0, chosen.length - count);
    const first = whole ? 0 : Math.min(last, Math.max(0, Math.floor(region.scrollTop / height) - 10));
    const rows = chosen.slice(first, first + count).map(rowOf);
    above.rows[0].cells[0].style.height = first * height + "px";
    below.rows[0].cells[0].style.height = Math.max(0, chosen.length - first - rows.length) * height + "px";
    body.replaceChildren(...rows);
  }
  region.addEventListener("scroll", () => draw(false), { passive: true });
  addEventListener("resize", () => draw(false));
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw(false));
  draw(false);
  return (query) => {
    chosen = data.rows
      .map((_, index) => index)
      .filter((index) => data.rows[index][0].toLowerCase().includes(query) || words[data.rows[index][1]].includes(query));
    region.scrollTop = 0;
    draw(false);
    return [chosen.length, data.rows.length];
  };
}

function start() {
  const search = document.querySelector(".search");
  const tables = Array.from(document.querySelectorAll("div.grid"), (section) => {
    const data = section.querySelector("script");
    return [section.dataset.noun, data ? longTable(section, JSON.parse(data.textContent)) : shortTable(section)];
  });
  let findings = Array.from(document.querySelectorAll("main > details"));
  const closed = findings.filter((entry) => !entry.open);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((entry) => { entry.open = true; }));
  addEventListener("afterprint", () => closed.forEach((entry) => { entry.open = false; }));
  // A page of nothing but lines is searched by its lines.
  if (!findings.length && !tables.length) findings = Array.from(document.querySelectorAll("main > p"));
  search.hidden = false;
  const said = search.querySelector("output");
  search.querySelector("input").addEventListener("input", (event) => {
    const query = event.target.value.trim().toLowerCase();
    const words = tables.map(([noun, filter]) => filter(query).join(" of ") + " " + noun + "s");
    let shown = 0;
    for (const entry of findings) {
      entry.hidden = !entry.textContent.toLowerCase().includes(query);
      shown += entry.hidden ? 0 : 1;
    }
    if (findings.length) words.push(shown + " of " + findings.length + " entries");
    said.textContent = query ? words.join(", ") : "";
  });
}
start();
