// A click on a heading sorts its table, and CSV saves it. The page is complete without this script.
const text = cell => cell.innerText.trim().replace(/\s+/g, " ");
const number = shown => {
  const found = /^([+−±]?)([\d,]+(\.\d+)?)( %| pts)?\b/.exec(shown.replace(/\u00a0/g, " "));
  return found && found[0].length > shown.length - 3 ? (found[1] === "−" ? -1 : 1) * found[2].replace(/,/g, "") : null;
};
const rank = cell => {
  const shown = text(cell).replace(/, [\d,]+ (campaign|review)s?$| so far$/, "");
  const value = number(shown) ?? (/^(\d+ )?[A-Z][a-z]+ \d{4}$/.test(shown) ? Date.parse(shown) : NaN);
  return /^(–?|Unknown month)$/.test(shown) ? null : Number.isNaN(value) ? shown.toLowerCase() : value;
};
const compare = (a, b) => a === null ? (b === null ? 0 : 1) : b === null ? -1 : a < b ? 1 : a > b ? -1 : 0;
const field = cell => {
  const shown = text(cell), value = number(shown);
  if (shown === "–") return "";
  if (value !== null) return / (%|pts)$/.test(shown) ? String(+(value / 100).toFixed(4)) : String(value);
  return '"' + shown.replace(/^[=+\-@\t]/, "'$&").replace(/"/g, '""') + '"';
};
for (const table of document.querySelectorAll(".table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.ariaSort === "descending" ? -1 : 1;
      const value = new Map([...body.rows].map(row => [row, rank(row.cells[place])]));
      const rows = [...body.rows].sort((a, b) => (value.get(a) === null || value.get(b) === null ? 1 : sign) * compare(value.get(a), value.get(b)));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = sign > 0 ? "descending" : "ascending";
      body.append(...rows);
    });
  });
  const save = document.createElement("button");
  save.className = "csv";
  save.textContent = "CSV";
  save.title = "Save this table as CSV";
  save.addEventListener("click", () => {
    const lines = [...table.rows].map(row => [...row.cells].map(field).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff" + lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
    link.download = (table.dataset.name || "table") + ".csv";
    link.click();
  });
  table.parentElement.after(save);
}
