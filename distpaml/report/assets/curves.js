// Learning curves, few-shot curves, and what all sections share: which groups are shown, and under which measure.
const state = {
  experiment: 0,
  measure: "",
  over: "",
  log: { rmse: true, nll: true },
  seeds: false,
  hidden: {},
  more: false,
  run: null,
  round: null,
  output: 0,
  colour: 0,
  axes: [0, 1],
  level: {},
  best: 0,
};
const DIVISORS = { "": "divided by test outputs", _paper: "divided by training outputs (the paper's)" };
const DIVISOR_WORDS = {
  "": "Errors are divided by the standard deviation of the test outputs: the same for all rounds and methods of a seed.",
  _paper:
    "Errors are divided by the standard deviation of the training outputs, as in the authors' code: " +
    "a method that picks violent tasks looks better than it is.",
};
const FEW = 12;

const experiment = () => DATA.experiments[state.experiment];
const isError = (kind) => DATA.measures[kind].smaller_is_better;
const measureOf = (kind) => (isError(kind) ? kind + state.measure + state.over : kind);
const kindName = (kind) => DATA.measures[kind].label;
const unit = (kind) => DATA.measures[kind].unit;
const plusMinus = (error) => (error === null ? "" : ` ± ${number(error, 2)}`);

function measureName(kind) {
  if (!isError(kind)) return kindName(kind);
  return `${kindName(kind)}${state.over ? " (median over test tasks)" : ""}, ${DIVISORS[state.measure]}`;
}

// Groups of a large experiment, the best first; the others stay hidden until someone asks for them.
function ranking(entry) {
  const value = (group) => (group.has_rounds ? (group.measures[measureOf("rmse")].mean.at(-1) ?? Infinity) : -Infinity);
  return entry.groups
    .map((group, i) => [value(group), i])
    .sort((a, b) => a[0] - b[0])
    .map(([, i]) => i);
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

function chip(entry, i) {
  const group = entry.groups[i],
    variant = Object.entries(group.variant)
      .map(([k, v]) => `\n${k}=${v}`)
      .join("");
  const flip = () => {
    const set = hidden(entry);
    set.has(group.label) ? set.delete(group.label) : set.add(group.label);
    render();
  };
  return h(
    "button",
    {
      type: "button",
      class: "chip",
      "aria-pressed": String(isShown(entry, i)),
      "data-group": group.label,
      title: `${group.finished} of ${group.seeds.length} seeds finished${variant}`,
      onclick: flip,
    },
    swatch(styleOf(entry.groups, i)),
    group.label,
  );
}

function chips(entry) {
  const all = entry.groups.map((_, i) => i);
  const order = all.length > FEW && !state.more ? ranking(entry).slice(0, FEW) : all;
  const more = () => {
    state.more = !state.more;
    render();
  };
  return h(
    "div",
    { class: "chips", role: "group", "aria-label": "Methods that are shown" },
    order.map((i) => chip(entry, i)),
    order.length < all.length || state.more
      ? h(
          "button",
          { type: "button", class: "quiet", onclick: more },
          state.more ? "Fewer" : `+ ${all.length - order.length} more`,
        )
      : null,
  );
}

// Rows [x, low, high] of a band of one standard error; null where there is none.
function errorBand(xs, mean, error, atLeast = -Infinity) {
  return xs.map((x, k) =>
    error[k] === null ? [x, null, null] : [x, Math.max(mean[k] - error[k], atLeast), mean[k] + error[k]],
  );
}

function curveScale(kind, values) {
  if (!state.log[kind]) return "linear";
  if (kind === "nll") return "signed";
  return values.every((v) => v === null || v > 0) ? "log" : "linear";
}

// A horizontal line with a name, such as the oracle's error.
function level(marks, [from, to], value, text, style) {
  marks.push({
    kind: "line",
    points: [
      [from, value],
      [to, value],
    ],
    width: 2.4,
    ...style,
  });
  marks.push({ kind: "text", x: from, y: value, dy: -6, dx: 4, text, class: "note-text" });
}

function curves(kind) {
  const entry = experiment(),
    measure = measureOf(kind),
    shown = shownGroups(entry),
    { nominal } = DATA.measures[kind];
  const marks = [],
    points = [],
    ys = nominal === null ? [] : [nominal],
    xs = [1];
  for (const [group] of shown) {
    const m = group.measures[measure];
    ys.push(...m.mean, ...errorBand(group.added, m.mean, m.error).flatMap(([, low, high]) => [low, high]));
    if (state.seeds) ys.push(...m.seeds.flat());
    if (group.has_rounds) xs.push(...group.added);
  }
  const scale = curveScale(kind, ys),
    last = Math.max(...xs),
    xdomain = [-0.02 * last, last * 1.02],
    ydomain = extent(ys, scale);
  if (nominal !== null)
    level(marks, xdomain, nominal, `honest: ${number(nominal)}`, { color: "var(--muted)", dash: "4 4", width: 1.2 });
  for (const [group, i] of shown) {
    const style = styleOf(entry.groups, i),
      m = group.measures[measure];
    const words = (k) => `${kindName(kind)} ${number(m.mean[k], 4)}${plusMinus(m.error[k])}\n${m.count[k]} seeds`;
    if (!group.has_rounds) {
      const [v, e] = [m.mean[0], m.error[0]];
      if (e !== null)
        marks.push({ kind: "band", points: xdomain.map((x) => [x, v - e, v + e]), color: style.color, strength: 0.1 });
      level(marks, xdomain, v, `${group.label}: the line to reach`, { color: style.color, dash: style.dash });
      points.push({ x: last, y: v, series: group.label, text: `${group.label}\n${words(0)}` });
      continue;
    }
    const line = group.added.map((a, k) => [a, m.mean[k]]);
    if (state.seeds) {
      const seed = (row) => ({
        kind: "line",
        points: row.map((v, k) => [group.added[k], v]),
        color: style.color,
        width: 0.8,
        opacity: 0.45,
      });
      marks.push(...m.seeds.map(seed));
    }
    marks.push({
      kind: "band",
      points: errorBand(group.added, m.mean, m.error, scale === "log" ? ydomain[0] : undefined),
      color: style.color,
    });
    marks.push({ kind: "line", points: line, color: style.color, dash: style.dash, class: "curve" });
    marks.push({ kind: "marks", points: line, color: style.color, mark: style.mark });
    points.push(
      ...line.map(([x, y], k) => ({ x, y, series: group.label, text: `${group.label}\n${x} added: ${words(k)}` })),
    );
  }
  const log = (on) => {
    state.log[kind] = on;
    render();
  };
  const head = h(
    "div",
    { class: "figure-head" },
    h("h3", {}, kindName(kind), h("small", {}, ` ${unit(kind)}`)),
    kind in state.log ? toggle(kind === "nll" ? "log beyond ±1" : "log scale", state.log[kind], log) : null,
  );
  const names = shown.map(([g]) => g.label).join(", ");
  const label = `${measureName(kind)} against added tasks for ${names}; the numbers are in the table below`;
  const ticks = linearTicks(0, last, Math.min(8, last)).filter(Number.isInteger);
  return h(
    "figure",
    { "data-figure": `curves-${kind}` },
    head,
    plot({
      height: 320,
      label,
      x: { label: "added tasks", domain: xdomain, ticks },
      y: { kind: scale, domain: ydomain },
      marks,
      points,
    }),
    numbers(() => curveTable(shown, measure)),
  );
}

function curveTable(shown, measure) {
  const added = [...new Set(shown.flatMap(([g]) => g.added))].sort((a, b) => a - b);
  const cell = (group, a) => {
    const k = group.added.indexOf(a),
      m = group.measures[measure];
    if (k < 0) return "";
    return h(
      "span",
      { "data-value": m.mean[k], "data-error": m.error[k] },
      `${number(m.mean[k], 4)}${plusMinus(m.error[k])}`,
    );
  };
  const rows = added.map((a) => [String(a), ...shown.map(([g]) => cell(g, a))]);
  return table(["added tasks", ...shown.map(([g]) => g.label)], rows, {
    "data-table": measure,
    "aria-label": `${measure} by added tasks`,
  });
}

function shots(kind) {
  const entry = experiment(),
    measure = measureOf(kind),
    marks = [],
    points = [],
    ys = [],
    xs = [];
  for (const line of entry.shots.lines.filter((one) => isShown(entry, one.group))) {
    const style = styleOf(entry.groups, line.group),
      { label } = entry.groups[line.group],
      [mean, error] = line.measures[measure];
    const pairs = line.shots.map((k, i) => [k, mean[i]]);
    const words = ([x, y]) => `${label}\n${x} transitions seen: ${kindName(kind)} ${number(y, 4)}`;
    xs.push(...line.shots);
    ys.push(...mean);
    marks.push({ kind: "band", points: errorBand(line.shots, mean, error), color: style.color });
    marks.push({ kind: "line", points: pairs, color: style.color, dash: style.dash });
    marks.push({ kind: "marks", points: pairs, color: style.color, mark: style.mark });
    points.push(...pairs.map((pair) => ({ x: pair[0], y: pair[1], series: label, text: words(pair) })));
  }
  const scale = curveScale(kind, ys),
    label = `Few-shot ${measureName(kind)} in the last round against observed transitions`;
  const x = { label: "observed transitions of a new task", domain: extent(xs), ticks: [...new Set(xs)] };
  return h(
    "figure",
    { "data-figure": `shots-${kind}` },
    h("h3", {}, `Few-shot ${kindName(kind)}`),
    plot({ height: 240, label, x, y: { kind: scale, domain: extent(ys, scale, 0.12) }, marks, points }),
  );
}

function curvesSection() {
  const lead = `Error on the test tasks against added tasks, mean ± standard error over seeds. ${DIVISOR_WORDS[state.measure]}`;
  const seeds = toggle("every seed", state.seeds, (on) => {
    state.seeds = on;
    render();
  });
  const honest =
    "Coverage is the share of test outputs inside their 95 % interval. " +
    "Below 0.95 the model is overconfident, above it too cautious; the worst task shows whether some task hides behind the mean.";
  return [
    h("p", { class: "lead" }, lead),
    h("div", { class: "row" }, seeds),
    h("div", { class: "two" }, curves("rmse"), curves("nll")),
    experiment().shots ? h("div", { class: "two" }, shots("rmse"), shots("nll")) : null,
    h("p", { class: "lead" }, honest),
    h("div", { class: "two" }, curves("coverage"), curves("coverage_worst")),
  ];
}
