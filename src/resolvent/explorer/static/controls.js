// Sliders with typed values beside them, menus and boxes, each bound to a field of the state.

const TICKS = 200;

export function tex(element) {
  // the formulas are our own; KaTeX writes MathML, which needs no fonts
  element.innerHTML = katex.renderToString(element.dataset.tex, { output: "mathml" });
}

export function build(schema, state) {
  const groups = document.getElementById("groups");
  const refreshers = [];
  const sets = {};
  for (const name of ["Tokens", "Weights", "Probe", "Attention"]) {
    sets[name] = groups.appendChild(document.createElement("fieldset"));
    sets[name].appendChild(document.createElement("legend")).textContent = name;
  }
  refreshers.push(weightChoice(sets.Weights, state));
  for (const [name, number] of Object.entries(schema.numbers)) {
    refreshers.push(slider(sets[number.group], name, number, state));
  }
  for (const name of ["centred", "keep_diagonal", "log"]) refreshers.push(box(name, state));
  for (const name of Object.keys(schema.sizes)) refreshers.push(size(name, schema.sizes[name], state));
  for (const name of ["over", "x", "y"]) refreshers.push(menu(name, () => axes(schema, name, state), state));
  refreshers.push(menu("error", () => [["test", "test"], ["train", "training"]], state));
  refreshers.push(menu("matrix", () => [["features", "H'H/n"], ["attention", "K"]], state));
  refreshers.push(nonlinearity(schema.functions, state));
  document.getElementById("reset").addEventListener("click", () => state.reset());
  const refresh = () => refreshers.forEach((one) => one());
  state.listen(refresh);
  refresh();
}

// The numbers that the weights and the nonlinearity have.
function axes(schema, side, state) {
  const names = schema.choices[side].filter((name) => free(name, state));
  return names.map((name) => [name, schema.numbers[name].label]);
}

function free(name, state) {
  const apart = state.get("weights") === "apart";
  if (name === "beta") return softmax(state.get("f"));
  return name === "align" ? !apart : apart || !ANGLE.test(name);
}

const ANGLE = /^(key|query)_/;
const softmax = (f) => f.trim() === "softmax";

function slider(parent, name, number, state) {
  const row = parent.appendChild(document.createElement("div"));
  row.className = "number";
  const label = row.appendChild(document.createElement("label"));
  label.htmlFor = `${name}-value`;
  label.appendChild(document.createElement("span")).textContent = number.label;
  const symbol = label.appendChild(document.createElement("span"));
  symbol.dataset.tex = number.symbol;
  tex(symbol);
  const range = row.appendChild(document.createElement("input"));
  const value = row.appendChild(document.createElement("input"));
  const place = number.geometric ? Math.log10 : (v) => v;
  const at = number.geometric ? (u) => Number((10 ** u).toPrecision(3)) : (u) => Number(u.toPrecision(6));
  range.type = "range";
  range.id = name;
  range.min = place(number.low);
  range.max = place(number.high);
  range.step = (range.max - range.min) / TICKS;
  range.setAttribute("aria-label", number.label);
  value.type = "number";
  value.id = `${name}-value`;
  value.step = "any";
  range.addEventListener("input", () => state.set({ [name]: at(Number(range.value)) }));
  value.addEventListener("input", () => value.value !== "" && state.set({ [name]: value.value }));
  return () => {
    const text = state.get(name);
    const position = place(Number(text));
    if (at(Number(range.value)) !== Number(text)) {
      range.value = Number.isNaN(position) ? range.min : Math.max(range.min, Math.min(range.max, position));
    }
    range.setAttribute("aria-valuetext", text);
    if (document.activeElement !== value) value.value = text;
    row.hidden = !free(name, state);
  };
}

function weightChoice(parent, state) {
  const texts = { aligned: "key = query, along the signal", apart: "key and query apart" };
  const inputs = Object.entries(texts).map(([value, text]) => {
    const label = parent.appendChild(document.createElement("label"));
    const input = label.appendChild(document.createElement("input"));
    Object.assign(input, { type: "radio", name: "weights", value, id: `weights-${value}` });
    label.append(` ${text}`);
    input.addEventListener("change", () => state.set({ weights: value, ...stillFree(value, state) }));
    return input;
  });
  return () => inputs.forEach((input) => (input.checked = input.value === state.get("weights")));
}

// Axes that the other kind of weights does not have give way to its own.
function stillFree(weights, state) {
  const lost = weights === "apart" ? (name) => name === "align" : (name) => ANGLE.test(name);
  const own = weights === "apart" ? ["key_cos", "query_cos"] : ["align", "ridge"];
  const changes = {};
  if (lost(state.get("over"))) changes.over = own[0];
  const taken = ["x", "y"].map((side) => state.get(side)).filter((name) => !lost(name));
  for (const side of ["x", "y"]) {
    if (!lost(state.get(side))) continue;
    changes[side] = own.find((name) => !taken.includes(name));
    taken.push(changes[side]);
  }
  return changes;
}

// Axes that only softmax has give way when it goes.
function withoutBeta(state) {
  const changes = state.get("over") === "beta" ? { over: "ridge" } : {};
  for (const [side, other] of [["x", "y"], ["y", "x"]]) {
    if (state.get(side) === "beta") changes[side] = ["ratio", "snr"].find((name) => name !== state.get(other));
  }
  return changes;
}

function box(name, state) {
  const input = document.getElementById(name);
  input.addEventListener("change", () => state.set({ [name]: input.checked ? "1" : "0" }));
  return () => {
    input.checked = state.get(name) === "1";
    input.disabled = name !== "log" && softmax(state.get("f"));
  };
}

function size(name, [, low, high], state) {
  const input = document.getElementById(name);
  Object.assign(input, { min: low, max: high, step: 1 });
  input.addEventListener("input", () => input.value !== "" && state.set({ [name]: input.value }));
  return () => {
    if (document.activeElement !== input) input.value = state.get(name);
  };
}

function menu(name, options, state) {
  const select = document.getElementById(name);
  select.addEventListener("change", () => {
    const other = { x: "y", y: "x" }[name];
    const swap = other && state.get(other) === select.value ? { [other]: state.get(name) } : {};
    state.set({ [name]: select.value, ...swap });
  });
  let shown = "";
  return () => {
    const pairs = options();
    if (shown !== String(pairs)) {
      select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
      shown = String(pairs);
    }
    select.value = state.get(name);
  };
}

function nonlinearity(names, state) {
  const input = document.getElementById("f");
  document.getElementById("functions").replaceChildren(...names.map((name) => new Option(name, name)));
  let timer = 0; // what is typed counts after a moment, or once the field is left
  const take = () => {
    clearTimeout(timer);
    timer = 0;
    const f = input.value.trim();
    if (f) state.set({ f, ...(softmax(f) ? { centred: "1", keep_diagonal: "0" } : withoutBeta(state)) });
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(take, 200);
  });
  input.addEventListener("change", take);
  return () => {
    if (!timer && document.activeElement !== input) input.value = state.get("f");
  };
}
