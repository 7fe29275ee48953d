// Start: the schema, the state in the address bar, the controls, the panels.

import { ask } from "./api.js";
import * as controls from "./controls.js";
import * as exporting from "./export.js";
import { Measured } from "./measure.js";
import { Panels } from "./panels.js";
import { State } from "./state.js";
import { OwnTokens } from "./tokens.js";

document.querySelectorAll("[data-tex]").forEach(controls.tex);
const schema = await ask("schema", "");
const state = new State(schema.defaults);
const measured = new Measured(state, () => panels.curve());
const panels = new Panels(schema, state, measured);
controls.build(schema, state);
exporting.build(panels, measured, new OwnTokens(schema, state), state);
state.listen(() => panels.refresh());
panels.refresh();
