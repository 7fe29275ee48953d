// From the state to the panels: ask, draw, and say in words what is drawn.

import { latest } from "./api.js";
import * as charts from "./charts.js";

const $ = (id) => document.getElementById(id);
const number = (value) => (value === null ? "not converged" : value.toFixed(4));

export class Panels {
  constructor(schema, state, measured) {
    this.schema = schema;
    this.state = state;
    this.measured = measured;
    this.found = {}; // the last reply of each panel
    this.drawn = {};
    const panel = (name, options) => latest(name, (...found) => this.show(name, ...found), (e) => this.fail(name, e), options);
    this.ask = {
      curve: panel("curve"),
      phase: panel("phase", { wait: 60, drop: true }),
      card: panel("card", { wait: 60, drop: true }),
      spectrum: panel("spectrum", { wait: 350, drop: true }),
    };
    this.draw = { curve: () => this.curve(), phase: () => this.phase(), spectrum: () => this.spectrum(), card: () => this.card() };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  // Ask for every panel whose query changed; where the curves' did not, their look did.
  refresh() {
    const since = performance.now();
    for (const name of Object.keys(this.ask)) {
      const query = this.state.query(IRRELEVANT[name]);
      if (this.drawn[name] === query) {
        if (name === "curve" && this.found.curve) this.curve();
        continue;
      }
      this.drawn[name] = query;
      if (name === "spectrum") $("spectrum-chart").classList.add("stale");
      this.ask[name](query, since);
    }
  }

  async show(name, found, query, since) {
    this.found[name] = found;
    await this.draw[name]();
    $(`${name}-chart`).classList.remove("stale");
    $(`${name}-chart`).dataset.drawn = query; // what the picture shows
    if (name === "curve") {
      performance.measure("redraw", { start: since, end: performance.now() });
      $("problem").hidden = true;
    }
  }

  fail(name, error) {
    $(`${name}-chart`).classList.add("stale");
    if (name === "spectrum") $("outliers").textContent = error.message;
    if (name === "curve") {
      $("problem").textContent = error.message;
      $("problem").hidden = false;
    }
    if (name === "phase") $("share").textContent = error.message;
  }

  redraw() {
    for (const name of Object.keys(this.found)) this.draw[name]();
  }

  async curve() {
    const found = this.found.curve;
    const axis = this.schema.numbers[found.over];
    const points = this.measured.points();
    const cut = await charts.curves("curve-chart", {
      ...found,
      points,
      refined: this.measured.atSize(),
      title: axis.label,
      geometric: axis.geometric,
      log: this.state.get("log") === "1",
    });
    const errors = (method) => `${charts.names[method]} ${number(found.here[method].train)} in training, ${number(found.here[method].test)} on fresh tokens`;
    const ahead = { attention: "attention is ahead", linear: "linear regression is ahead", tie: "neither is ahead" };
    $("here").textContent = `Here: ${errors("attention")}; ${errors("linear")}. In training ${ahead[found.winner.train]}, on fresh tokens ${ahead[found.winner.test]}.`;
    $("cut").hidden = !cut && found.converged;
    $("cut").textContent = found.converged ? "Cut off at 3: the log scale shows it all." : "Where the solver did not converge the curve has gaps.";
    const code = this.measured.code(found);
    $("python").textContent = code.python;
    $("command").textContent = code.command;
  }

  async phase() {
    const found = this.found.phase;
    await charts.phase("phase-chart", found, this.schema.numbers);
    const error = found.error === "test" ? "test" : "training";
    $("share").textContent = `Attention has the lower ${error} error in ${(100 * found.share).toFixed(1)} % of the plane; on the line the two are equal. Click to go to a point.`;
    const chart = $("phase-chart");
    chart.removeAllListeners("plotly_click");
    chart.on("plotly_click", ({ points: [point] }) => {
      const rounded = (value) => Number(value.toPrecision(3));
      this.state.set({ [found.x.name]: rounded(point.x), [found.y.name]: rounded(point.y) });
    });
  }

  async spectrum() {
    const found = this.found.spectrum;
    $("spectrum").classList.toggle("none", Boolean(found.missing));
    if (found.missing) {
      $("outliers").textContent = `None is drawn: ${found.missing}.`;
      return;
    }
    await charts.spectrum("spectrum-chart", found);
    const isolated = found.outliers.map((o) => `${o.place.toPrecision(4)} (${o.kind})`);
    const atoms = found.atoms.map((a) => `a share ${a.mass.toPrecision(3)} of the eigenvalues is ${Number(a.place.toPrecision(3))}`);
    $("outliers").textContent = [isolated.length ? `Isolated: ${isolated.join(", ")}.` : "No isolated eigenvalue.", ...atoms.map((a) => `${a[0].toUpperCase()}${a.slice(1)}.`)].join(" ");
  }

  async card() {
    const found = this.found.card;
    await charts.card("card-chart", found);
    const rows = { a0: "mean a0", a1: "linear part a1", a2: "quadratic part a2", nu: "power ν", sigma2: "noise power σ²", linear_share: "linear share a1²/ν" };
    $("card-title").textContent = `The nonlinearity: ${found.card.name}`;
    $("coefficients").replaceChildren(
      ...Object.entries(rows).map(([key, text]) => {
        const row = document.createElement("tr");
        row.appendChild(document.createElement("th")).textContent = text;
        row.appendChild(document.createElement("td")).textContent = found.card[key].toPrecision(6);
        return row;
      }),
    );
    $("sentence").textContent = found.card.sentence;
  }
}

// Fields that a panel does not depend on.
const SIZES = ["n", "draws", "seed"];
const PLANE = ["x", "y", "error"];
const PROBE = ["ridge", "label_noise"];
const IRRELEVANT = {
  curve: new Set(["log", "matrix", ...PLANE]),
  phase: new Set(["log", "matrix", "over", ...SIZES]),
  spectrum: new Set(["log", "over", "draws", ...PLANE, ...PROBE]),
  card: new Set(["log", "matrix", "over", ...SIZES, ...PLANE, ...PROBE, "ratio", "snr", "label_mean", "skip", "weights", "align", "key_norm", "query_norm", "key_cos", "query_cos"]),
};
