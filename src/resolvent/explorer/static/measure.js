// Measured points: asked for, shown as they arrive, cancelled.

import { events } from "./api.js";

const $ = (id) => document.getElementById(id);

export class Measured {
  constructor(state, changed) {
    this.state = state;
    this.changed = changed;
    this.found = []; // the points
    this.refined = []; // what is predicted at their size
    this.key = null; // the setting that they belong to
    this.text = null; // the code that gives them
    this.stop = null;
    $("measure").addEventListener("click", () => this.measure());
    $("cancel").addEventListener("click", () => this.stop?.abort());
    state.listen(() => this.key !== null && this.key !== state.measured() && this.clear());
  }

  clear() {
    this.stop?.abort();
    this.found = [];
    this.refined = [];
    this.key = this.text = null;
    $("measured").textContent = "";
  }

  async measure() {
    this.clear();
    const stop = (this.stop = new AbortController());
    this.key = this.state.measured();
    this.running(true);
    try {
      for await (const [name, value] of events("measure", this.state.measured(), stop.signal)) {
        if (stop.signal.aborted) break;
        if (name === "point") this.add(value);
        if (name === "refined") this.refined.push(value);
        if (name === "code") this.text = value;
        this.changed();
      }
      this.say(`${this.found.length} points`);
    } catch (error) {
      if (this.stop === stop) this.say(stop.signal.aborted ? `cancelled after ${this.found.length} points` : error.message);
    } finally {
      if (this.stop === stop) this.running(false);
    }
  }

  add(point) {
    this.found.push(point);
    $("progress").max = point.of;
    $("progress").value = point.done;
    this.say(`${point.done} of ${point.of} points`);
  }

  say(text) {
    $("measured").textContent = text;
  }

  running(now) {
    $("progress").hidden = $("cancel").hidden = !now;
    $("measure").hidden = now;
    $("progress").removeAttribute("value");
  }

  // The prediction at the size of the points, as curves.
  atSize() {
    const of = (method, error) => this.refined.map((p) => p.y[method][error]);
    const both = (method) => ({ train: of(method, "train"), test: of(method, "test") });
    return { x: this.refined.map((p) => p.x), y: { attention: both("attention"), linear: both("linear") } };
  }

  // The points as traces want them.
  points() {
    if (!this.found.length) return null;
    const of = (method, error) => ({
      mean: this.found.map((p) => p.y[method][error].mean),
      se: this.found.map((p) => p.y[method][error].se),
    });
    const both = (method) => ({ train: of(method, "train"), test: of(method, "test") });
    return { x: this.found.map((p) => p.x), y: { attention: both("attention"), linear: both("linear") } };
  }

  code(curve) {
    return this.text ?? curve;
  }
}
