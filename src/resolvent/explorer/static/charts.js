// The pictures. Methods differ by colour and by dash and marker, so that none is needed alone.

const METHODS = {
  attention: { name: "attention", colour: "--attention", dash: { test: "solid", train: "dot" }, symbol: "circle" },
  linear: { name: "linear", colour: "--linear", dash: { test: "dash", train: "dashdot" }, symbol: "square" },
};
const ERRORS = { test: "test", train: "train" };
const HIGHEST = 3; // an error above it is cut off on the linear scale, where all else would be flat
const CONFIG = { displayModeBar: false, responsive: true };

export const names = { attention: "attention", linear: "linear regression" };

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axis(title, log, more = {}) {
  const line = { gridcolor: css("--grid"), linecolor: css("--rule"), zerolinecolor: css("--rule") };
  const ticks = log ? { type: "log", exponentformat: "power" } : { type: "linear" };
  return { title: { text: title, standoff: 6 }, ...line, ...ticks, ...more };
}

// Ticks at whole decades, where there are few.
const decades = (log, values) => (log && values.at(-1) / values[0] < 1e4 ? { dtick: 1 } : {});

function layout(more) {
  return {
    paper_bgcolor: css("--panel"),
    plot_bgcolor: css("--panel"),
    font: { color: css("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    margin: { l: 56, r: 14, t: 10, b: 46 },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", ...columns() },
    hoverlabel: { bgcolor: css("--panel"), font: { color: css("--ink") } },
    ...more,
  };
}

// Two columns where there is little room.
const columns = () => (innerWidth < 600 ? { x: -0.2, entrywidth: 0.48, entrywidthmode: "fraction", font: { size: 11 } } : {});

const draw = (id, traces, look) => Plotly.react(id, traces, layout(look), CONFIG);

function lines(x, y) {
  return pairs((method, error) => ({
    x,
    y: y[method][error],
    name: `${METHODS[method].name}, ${ERRORS[error]}`,
    mode: "lines",
    line: { color: css(METHODS[method].colour), dash: METHODS[method].dash[error], width: error === "test" ? 2.5 : 2 },
    hovertemplate: "%{y:.4f}",
  }));
}

// The refined equivalent at the measured size: a cross beside each point.
function crosses({ x, y }) {
  return pairs((method, error) => ({
    x,
    y: y[method][error],
    name: "predicted at this n",
    legendgroup: "refined",
    showlegend: method === "attention" && error === "test",
    mode: "markers",
    marker: { symbol: "x-thin", size: 9, line: { width: 1.8, color: css(METHODS[method].colour) } },
    hoverinfo: "skip",
  }));
}

// Measured means with a bar of one standard error: open markers for training.
function marks(x, y) {
  return pairs((method, error) => ({
    x,
    y: y[method][error].mean,
    name: `${METHODS[method].name}, ${ERRORS[error]}, measured`,
    mode: "markers",
    showlegend: false,
    marker: {
      color: css(METHODS[method].colour),
      symbol: METHODS[method].symbol + (error === "train" ? "-open" : ""),
      size: 8,
      line: { width: 1.5, color: css(METHODS[method].colour) },
    },
    error_y: { type: "data", array: y[method][error].se ?? [], thickness: 1.3, width: 3, color: css(METHODS[method].colour) },
    hovertemplate: "%{y:.4f}",
  }));
}

function pairs(make) {
  return Object.keys(METHODS).flatMap((method) => Object.keys(ERRORS).map((error) => make(method, error)));
}

// Errors against an axis; returns whether something is cut off.
export async function curves(id, { x, y, points, refined, title, geometric, at, log }) {
  const traces = [...lines(x, y), ...(refined?.x.length ? crosses(refined) : []), ...(points ? marks(points.x, points.y) : [])];
  const highest = Math.max(...traces.slice(0, 4).flatMap((t) => t.y.filter((v) => v !== null)), 0);
  const cut = !log && highest > HIGHEST;
  const vertical = log ? axis("mean squared error", true) : axis("mean squared error", false, { range: [0, cut ? HIGHEST : 1.06 * highest || 1] });
  const line = { type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: css("--quiet"), width: 1, dash: "dot" } };
  await draw(id, traces, {
    xaxis: axis(title, geometric, decades(geometric, x)),
    yaxis: vertical,
    hovermode: "x unified",
    shapes: at === undefined || (geometric && at <= 0) ? [] : [line],
  });
  return cut;
}

// The density of an eigenvalue, or of its logarithm for H'H/n, whose eigenvalues are positive and spread over decades.
export function spectrum(id, { pieces, atoms, outliers, sample, matrix }) {
  const log = matrix === "features";
  const height = (x, density) => (density === null ? null : log ? Math.LN10 * x * density : density);
  const heights = pieces.map((piece) => piece.x.map((x, k) => height(x, piece.density[k])));
  const top = Math.max(...heights.map((h) => quantile(h.filter((v) => v !== null), 0.98)), 1e-12);
  const densities = pieces.map((piece, k) => ({
    x: piece.x,
    y: heights[k],
    name: "density",
    showlegend: k === 0,
    mode: "lines",
    fill: "tozeroy",
    line: { color: css("--attention"), width: 2 },
    hovertemplate: "%{x:.4g}: %{y:.4g}",
  }));
  const stems = (points, name, dash, symbol) => ({
    x: points.flatMap((p) => [p.place, p.place, null]),
    y: points.flatMap(() => [0, 0.75 * top, null]),
    text: points.flatMap((p) => [p.text, p.text, ""]),
    name,
    mode: "lines+markers",
    marker: { symbol, size: 9, color: css("--linear") },
    line: { color: css("--linear"), dash, width: 2 },
    hovertemplate: "%{x:.4g}: %{text}",
  });
  const isolated = outliers.map((o) => ({ ...o, text: `${o.kind}, overlap with the labels ${o.overlap.toFixed(3)}` }));
  const shown = atoms.filter((a) => !log || a.place > 0).map((a) => ({ ...a, text: `mass ${a.mass.toPrecision(3)}` }));
  const least = log ? 0.3 * Math.min(...pieces.map((piece) => piece.x[0])) : -Infinity; // below are zeros, up to rounding
  const rug = sample.filter((v) => v > least);
  const ticks = {
    x: rug,
    y: rug.map(() => 0.035 * top),
    name: `one sample, n = ${sample.length}`,
    mode: "markers",
    marker: { symbol: "line-ns", size: 9, line: { width: 1, color: css("--ink") } },
    hovertemplate: "%{x:.4g}",
  };
  return draw(
    id,
    [
      ...densities,
      ticks,
      ...(isolated.length ? [stems(isolated, "isolated eigenvalue", "solid", "diamond")] : []),
      ...(shown.length ? [stems(shown, "atom", "dot", "x")] : []),
    ],
    {
      xaxis: axis(log ? "eigenvalue of H'H/n" : "eigenvalue of K", log),
      yaxis: axis(log ? "density per decade" : "density", false, { range: [0, 1.15 * top] }),
      showlegend: true,
    },
  );
}

function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(q * (sorted.length - 1))] : 0;
}

export function phase(id, { x, y, difference, boundary, at }, numbers) {
  const flat = difference.flat().filter((v) => v !== null).map(Math.abs);
  const size = Math.max(Math.min(quantile(flat, 0.9), 1), 1e-6);
  const map = {
    type: "heatmap",
    x: x.values,
    y: y.values,
    z: difference,
    zmin: -size,
    zmax: size,
    colorscale: [[0, css("--attention")], [0.5, css("--panel")], [1, css("--linear")]],
    colorbar: { title: { text: "attention less linear", side: "right" }, thickness: 10, len: 0.95, outlinewidth: 0 },
    hovertemplate: `${numbers[x.name].label} %{x:.3g}, ${numbers[y.name].label} %{y:.3g}<br>attention less linear %{z:.3g}<extra></extra>`,
  };
  const border = {
    x: boundary.flatMap((line) => [...line.map((p) => p[0]), null]),
    y: boundary.flatMap((line) => [...line.map((p) => p[1]), null]),
    mode: "lines",
    line: { color: css("--ink"), width: 2.5 },
    hoverinfo: "skip",
  };
  const here = {
    x: [at[0]],
    y: [at[1]],
    mode: "markers",
    marker: { symbol: "x-thin", size: 13, line: { width: 3, color: css("--ink") } },
    hoverinfo: "skip",
  };
  const side = ({ name, values }) => {
    const ends = [values[0], values.at(-1)];
    const log = numbers[name].geometric;
    return axis(numbers[name].label, log, { ...decades(log, values), range: log ? ends.map(Math.log10) : ends, showgrid: false });
  };
  return draw(id, [map, border, here], {
    xaxis: side(x),
    yaxis: side(y),
    showlegend: false,
    annotations: regions(x, y, difference, numbers),
  });
}

// The winner's name where it wins by most, away from the rim and from the other name.
function regions(x, y, difference, numbers) {
  const cells = difference.flatMap((row, i) => row.map((d, j) => ({ i, j, d })));
  const inside = ({ i, j }) => i > 2 && i < y.values.length - 3 && j > 7 && j < x.values.length - 8;
  const clear = cells.filter((cell) => cell.d !== null && Math.abs(cell.d) > 1e-9 && inside(cell));
  const widest = (found, free) => clear.filter(free).reduce((a, b) => (a && Math.abs(a.d) >= Math.abs(b.d) ? a : b), found);
  const attention = widest(null, (cell) => cell.d < 0);
  const linear = widest(null, (cell) => cell.d > 0 && (!attention || Math.abs(cell.i - attention.i) > 4));
  const place = (name, v) => (numbers[name].geometric ? Math.log10(v) : v);
  return Object.entries({ attention, linear })
    .filter(([, cell]) => cell)
    .map(([name, { i, j }]) => ({
      x: place(x.name, x.values[j]),
      y: place(y.name, y.values[i]),
      text: `${name} lower`,
      showarrow: false,
      bgcolor: css("--panel"),
      borderpad: 3,
      opacity: 0.9,
    }));
}

export function card(id, { t, f }) {
  const trace = { x: t, y: f, mode: "lines", line: { color: css("--attention"), width: 2.5 }, hovertemplate: "f(%{x:.2f}) = %{y:.4g}<extra></extra>" };
  return draw(id, [trace], { xaxis: axis("t", false), yaxis: axis("f(t)", false), showlegend: false });
}
