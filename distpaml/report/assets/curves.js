// Learning curves, few-shot curves, and what all sections share: which groups are shown, and under which measure.
const state = { experiment: 0, measure: "", over: "", log: { rmse: true, nll: true }, seeds: false, hidden: {}, more: false, run: null, round: null, output: 0, colour: 0, axes: [0, 1], level: {}, best: 0 };
const KINDS = { rmse: "RMSE", nll: "NLL" };
const MEASURES = { "": "divided by test outputs", _paper: "divided by training outputs (the paper's)" };
const FEW = 12;

const experiment = () => DATA.experiments[state.experiment];
const measureOf = (kind) => kind + state.measure + state.over;
const measureName = (kind) => `${KINDS[kind]}${state.over ? " (median over test tasks)" : ""}, ${MEASURES[state.measure]}`;
const unit = (kind) => (kind === "nll" ? "nats per number" : "standard deviations");

// Groups of a large experiment, the best ones first; others are hidden until they are asked for.
function ranking(entry) {
  const value = (group) => group.measures[measureOf("rmse")].mean.at(-1) ?? Infinity;
  return entry.groups.map((group, i) => [group.method === "oracle" ? -Infinity : value(group), i]).sort((a, b) => a[0] - b[0]).map(([, i]) => i);
}
function hidden(entry) {
  if (!state.hidden[entry.name]) {
    const order = entry.groups.length > FEW ? ranking(entry).slice(FEW) : [];
    state.hidden[entry.name] = new Set(order.map((i) => entry.groups[i].label));
  }
  return state.hidden[entry.name];
}
const isShown = (entry, i) => !hidden(entry).has(entry.groups[i].label);
const shownGroups = (entry) => entry.groups.map((group, i) => [group, i]).filter(([, i]) => isShown(entry, i));

function chips(entry) {
  const order = entry.groups.length > FEW && !state.more ? ranking(entry).slice(0, FEW) : entry.groups.map((_, i) => i);
  const flip = (label) => { const set = hidden(entry); set.has(label) ? set.delete(label) : set.add(label); render(); };
  return h("div", { class: "chips", role: "group", "aria-label": "Methods that are shown" },
    order.map((i) => {
      const group = entry.groups[i], values = Object.entries(group.variant).map(([k, v]) => `${k}=${v}`).join("\n");
      return h("button", { type: "button", class: "chip", "aria-pressed": String(isShown(entry, i)), "data-group": group.label,
        title: `${group.finished} of ${group.seeds.length} seeds finished${values ? `\n${values}` : ""}`, onclick: () => flip(group.label) },
        swatch(styleOf(entry.groups, i)), group.label);
    }),
    order.length < entry.groups.length || state.more ? h("button", { type: "button", class: "quiet", onclick: () => { state.more = !state.more; render(); } },
      state.more ? "Fewer" : `+ ${entry.groups.length - order.length} more`) : null);
}

function curves(kind) {
  const entry = experiment(), measure = measureOf(kind), marks = [], points = [], ys = [], xs = [];
  const shown = shownGroups(entry);
  for (const [group] of shown) {
    const m = group.measures[measure];
    m.mean.forEach((v, k) => ys.push(v, m.error[k] === null ? v : v - m.error[k], m.error[k] === null ? v : v + m.error[k]));
    if (state.seeds) ys.push(...m.seeds.flat());
    if (group.method !== "oracle") xs.push(...group.added);
  }
  const positive = ys.every((v) => v === null || v > 0 || kind === "nll");
  const scale = state.log[kind] ? (kind === "nll" ? "signed" : positive ? "log" : "linear") : "linear";
  const last = Math.max(...xs, 1), xdomain = [-0.02 * last, last * 1.02], ydomain = extent(ys, scale);
  for (const [group, i] of shown) {
    const style = styleOf(entry.groups, i), m = group.measures[measure];
    if (group.method === "oracle") {
      const [v, e] = [m.mean[0], m.error[0]];
      if (e !== null) marks.push({ kind: "band", points: [[xdomain[0], v - e, v + e], [xdomain[1], v - e, v + e]], color: style.color, strength: 0.1 });
      marks.push({ kind: "line", points: [[xdomain[0], v], [xdomain[1], v]], color: style.color, dash: style.dash, width: 2.4 });
      marks.push({ kind: "text", x: xdomain[0], y: v, dy: -6, dx: 4, text: `${group.label}: the line to reach`, class: "note-text" });
      points.push({ x: last, y: v, series: group.label, text: `${group.label}\n${KINDS[kind]} ${number(v, 4)}${e === null ? "" : ` ± ${number(e, 2)}`}\n${m.count[0]} seeds` });
      continue;
    }
    if (state.seeds) m.seeds.forEach((row) => marks.push({ kind: "line", points: row.map((v, k) => [group.added[k], v]), color: style.color, width: 0.8, opacity: 0.45 }));
    const clipLow = (v) => (scale === "log" ? Math.max(v, ydomain[0]) : v);
    marks.push({ kind: "band", points: group.added.map((a, k) => [a, m.error[k] === null ? null : clipLow(m.mean[k] - m.error[k]), m.error[k] === null ? null : m.mean[k] + m.error[k]]), color: style.color });
    marks.push({ kind: "line", points: group.added.map((a, k) => [a, m.mean[k]]), color: style.color, dash: style.dash, class: "curve" });
    marks.push({ kind: "marks", points: group.added.map((a, k) => [a, m.mean[k]]), color: style.color, mark: style.mark });
    group.added.forEach((a, k) => points.push({ x: a, y: m.mean[k], series: group.label,
      text: `${group.label}\n${a} added: ${KINDS[kind]} ${number(m.mean[k], 4)}${m.error[k] === null ? "" : ` ± ${number(m.error[k], 2)}`}\n${m.count[k]} seeds` }));
  }
  const head = h("div", { class: "figure-head" }, h("h3", {}, KINDS[kind], h("small", {}, ` ${unit(kind)}`)),
    toggle(kind === "nll" ? "log beyond ±1" : "log scale", state.log[kind], (on) => { state.log[kind] = on; render(); }));
  const label = `${measureName(kind)} against added tasks for ${shown.map(([g]) => g.label).join(", ")}; the numbers are in the table below`;
  return h("figure", { "data-figure": `curves-${kind}` }, head,
    plot({ height: 320, label, x: { label: "added tasks", domain: xdomain, ticks: linearTicks(0, last, Math.min(8, last)).filter(Number.isInteger) }, y: { kind: scale, domain: ydomain }, marks, points }),
    numbers(() => curveTable(entry, shown, measure)));
}

function curveTable(entry, shown, measure) {
  const added = [...new Set(shown.flatMap(([g]) => g.added))].sort((a, b) => a - b);
  const cell = (group, a) => {
    const k = group.added.indexOf(a), m = group.measures[measure];
    return k < 0 ? "" : h("span", { "data-value": m.mean[k], "data-error": m.error[k] }, `${number(m.mean[k], 4)}${m.error[k] === null ? "" : ` ± ${number(m.error[k], 2)}`}`);
  };
  return table(["added tasks", ...shown.map(([g]) => g.label)], added.map((a) => [String(a), ...shown.map(([g]) => cell(g, a))]), { "data-table": measure, "aria-label": `${measure} by added tasks` });
}

function shots(kind) {
  const entry = experiment(), measure = measureOf(kind), marks = [], points = [], ys = [], xs = [];
  const lines = entry.shots.lines.filter((line) => isShown(entry, line.group));
  for (const line of lines) {
    const style = styleOf(entry.groups, line.group), label = entry.groups[line.group].label, [mean, error] = line.measures[measure];
    xs.push(...line.shots); ys.push(...mean);
    marks.push({ kind: "band", points: line.shots.map((k, i) => [k, error[i] === null ? null : mean[i] - error[i], error[i] === null ? null : mean[i] + error[i]]), color: style.color });
    marks.push({ kind: "line", points: line.shots.map((k, i) => [k, mean[i]]), color: style.color, dash: style.dash });
    marks.push({ kind: "marks", points: line.shots.map((k, i) => [k, mean[i]]), color: style.color, mark: style.mark });
    line.shots.forEach((k, i) => points.push({ x: k, y: mean[i], series: label, text: `${label}\n${k} transitions seen: ${KINDS[kind]} ${number(mean[i], 4)}` }));
  }
  const scale = state.log[kind] ? (kind === "nll" ? "signed" : "log") : "linear";
  return h("figure", { "data-figure": `shots-${kind}` }, h("h3", {}, `Few-shot ${KINDS[kind]}`),
    plot({ height: 240, label: `Few-shot ${measureName(kind)} in the last round against observed transitions`, x: { label: "observed transitions of a new task", domain: extent(xs), ticks: [...new Set(xs)] }, y: { kind: scale, domain: extent(ys, scale, 0.12) }, marks, points }));
}

function curvesSection() {
  const entry = experiment();
  return [h("p", { class: "lead" }, `Error on the test tasks against tasks that were added, mean ± standard error over seeds. ${MEASURES[state.measure] === MEASURES[""] ? "Errors are divided by the standard deviation of the test outputs: the same for all rounds and methods of a seed." : "Errors are divided by the standard deviation of the training outputs, as in the authors' code: a method that picks violent tasks looks better than it is."}`),
    h("div", { class: "row" }, toggle("every seed", state.seeds, (on) => { state.seeds = on; render(); })),
    h("div", { class: "two" }, curves("rmse"), curves("nll")),
    entry.shots ? h("div", { class: "two" }, shots("rmse"), shots("nll")) : null];
}
