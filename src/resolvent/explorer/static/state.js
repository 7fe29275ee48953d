// The state of the page: the fields of a view, as text, kept in the address bar.
// Only what differs from the defaults is written, so that links stay short.

const QUIET = 150; // ms after the last change before the address is written

// fields that change what is shown, and not the numbers that were measured
const LOOKS = new Set(["log", "x", "y", "error", "matrix"]);

export class State {
  constructor(defaults) {
    this.defaults = Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, String(value)]));
    this.listeners = [];
    this.timer = 0;
    this.read();
    addEventListener("hashchange", () => {
      this.read();
      this.tell();
    });
  }

  // Take the state from the address; what is no field is left out.
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    this.values = { ...this.defaults };
    for (const [name, value] of given) if (name in this.defaults) this.values[name] = value;
  }

  get(name) {
    return this.values[name];
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) this.values[name] = String(value);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), QUIET);
    this.tell();
  }

  reset() {
    this.set(this.defaults);
  }

  write() {
    const query = this.query();
    history.replaceState(null, "", query ? `#${query}` : location.pathname);
  }

  link() {
    const query = this.query();
    return location.origin + location.pathname + (query ? `#${query}` : "");
  }

  query(skipped = new Set()) {
    const names = Object.keys(this.defaults).filter((name) => this.values[name] !== this.defaults[name]);
    return new URLSearchParams(names.filter((n) => !skipped.has(n)).map((n) => [n, this.values[n]])).toString();
  }

  // What the measured points belong to.
  measured() {
    return this.query(LOOKS);
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  tell() {
    for (const listener of this.listeners) listener();
  }
}
