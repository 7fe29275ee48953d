// Take a panel away: as a picture, as numbers, as code, as a link.

const $ = (id) => document.getElementById(id);

export function build(panels, measured, tokens, state) {
  for (const row of document.querySelectorAll("[data-export]")) {
    const name = row.dataset.export;
    const button = (text, act) => {
      const made = row.appendChild(document.createElement("button"));
      Object.assign(made, { type: "button", textContent: text, id: `${name}-${text.toLowerCase()}` });
      made.addEventListener("click", act);
    };
    const file = `resolvent-${name}`;
    const picture = (format) => {
      const chart = $(`${name}-chart`);
      const size = { width: Math.max(chart.clientWidth, 640), height: Math.max(chart.clientHeight, 360) };
      return Plotly.downloadImage(chart, { format, filename: file, scale: format === "png" ? 2 : 1, ...size });
    };
    button("PNG", () => picture("png"));
    button("SVG", () => picture("svg"));
    button("CSV", () => save(`${file}.csv`, csv(TABLES[name](name === "tokens" ? tokens.found : panels.found[name], measured))));
  }
  const copies = { python: () => $("python").textContent, command: () => $("command").textContent, link: () => state.link() };
  for (const [name, text] of Object.entries(copies)) {
    $(`copy-${name}`).addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text());
        $("copied").textContent = "copied";
      } catch {
        $("copied").textContent = "the browser does not let pages copy: select the text below";
      }
    });
  }
}

const PAIRS = ["attention", "linear"].flatMap((m) => ["train", "test"].map((e) => [m, e]));

// Rows of each panel, a header first.
const TABLES = {
  curve: (found, measured) => [...curves(found, found.over), ...points(measured.points()), ...refined(measured.atSize())],
  tokens: (found) => [...curves(found, "ridge"), ...points(found.points)],
  phase: ({ x, y, difference }) => [
    [x.name, y.name, "attention less linear"],
    ...y.values.flatMap((v, i) => x.values.map((u, j) => [u, v, difference[i][j]])),
  ],
  spectrum: ({ pieces, atoms, outliers, sample }) => [
    ["kind", "eigenvalue", "value"],
    ...pieces.flatMap((p) => p.x.map((u, k) => ["density", u, p.density[k]])),
    ...atoms.map((a) => ["atom (mass)", a.place, a.mass]),
    ...sample.map((u) => ["sample", u, ""]),
    ...outliers.map((o) => [`isolated, ${o.kind} (overlap)`, o.place, o.overlap]),
  ],
  card: ({ t, f }) => [["t", "f"], ...t.map((u, k) => [u, f[k]])],
};

function curves({ x, y }, over) {
  const head = [over, ...PAIRS.map((pair) => pair.join(" ")), ...PAIRS.map((pair) => `${pair.join(" ")} se`), "kind"];
  return [head, ...x.map((u, k) => [u, ...PAIRS.map(([m, e]) => y[m][e][k]), "", "", "", "", "predicted"])];
}

function points(found) {
  if (!found) return [];
  const { x, y } = found;
  const at = (key, k) => PAIRS.map(([m, e]) => y[m][e][key]?.[k] ?? "");
  return x.map((u, k) => [u, ...at("mean", k), ...at("se", k), "measured"]);
}

function refined({ x, y }) {
  return x.map((u, k) => [u, ...PAIRS.map(([m, e]) => y[m][e][k]), "", "", "", "", "predicted at this n"]);
}

function csv(rows) {
  const cell = (value) => (value === null ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
