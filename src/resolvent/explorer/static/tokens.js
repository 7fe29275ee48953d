// The reader's own tokens: a file goes to the server's memory, and what it says comes back.

import { events } from "./api.js";
import * as charts from "./charts.js";

const $ = (id) => document.getElementById(id);

export class OwnTokens {
  constructor(schema, state) {
    this.schema = schema;
    this.state = state;
    this.found = null;
    this.stop = null;
    $("file").addEventListener("change", () => $("file").files[0] && this.read($("file").files[0]));
    $("tokens-cancel").addEventListener("click", () => this.stop?.abort());
    $("use").addEventListener("click", () => this.state.set(this.usable));
    for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
      addEventListener(name, (event) => {
        event.preventDefault();
        $("drop").classList.toggle("over", name === "dragenter" || name === "dragover");
        if (name === "drop" && event.dataTransfer.files[0]) this.read(event.dataTransfer.files[0]);
      });
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  async read(file) {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    this.problem("");
    this.running(true);
    $("tokens-found").hidden = $("use").hidden = true;
    try {
      if (file.size > this.schema.largest) throw new Error(`a file has at most ${this.schema.largest / 2 ** 20} MiB`);
      const query = new URLSearchParams([...new URLSearchParams(this.state.query()), ["file", file.name]]);
      for await (const [name, value] of events("tokens", query, stop.signal, file)) {
        if (name === "tokens") this.said(file.name, value);
        if (name === "curves") {
          this.found = value;
          $("reason").textContent = value.reason;
          this.draw();
        }
      }
    } catch (error) {
      if (this.stop === stop) this.problem(stop.signal.aborted ? "cancelled" : error.message);
    } finally {
      if (this.stop === stop) this.running(false);
      $("file").value = "";
    }
  }

  said(name, { text, broken, use }) {
    this.usable = Object.fromEntries(Object.entries(use).map(([key, value]) => [key, Number(value.toPrecision(4))]));
    $("estimate").textContent = `${name}\n${text}`;
    $("broken").replaceChildren(
      ...broken.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
    );
    this.found = null;
    $("reason").textContent = "";
    $("tokens-found").hidden = $("use").hidden = false;
  }

  draw() {
    if (this.found === null) return null;
    return charts.curves("tokens-chart", {
      ...this.found,
      title: "ridge",
      geometric: true,
      at: Number(this.state.get("ridge")),
      log: this.state.get("log") === "1",
    });
  }

  problem(text) {
    $("tokens-problem").textContent = text;
    $("tokens-problem").hidden = !text;
  }

  running(now) {
    $("tokens-progress").hidden = $("tokens-cancel").hidden = !now;
  }
}
