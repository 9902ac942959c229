// Methods against the baselines on the same seeds, and how many tasks each needs.
const PAIRED =
  "Differences are paired: methods of a seed share initial tasks, controls and test data. Below zero is better than " +
  "the baseline: ▼ better, ▲ worse, ◇ open if the interval holds zero; then the seeds on which the method wins. " +
  "Intervals are 95 % bootstrap intervals of the mean over finished seeds, p is that of a sign test (five wins of " +
  "five are 0.06). The mean over the horizon is the area under the curve, per added task. ";
const NEEDED =
  "Added tasks until the RMSE first reaches a level: one dot per seed, the bar is the median. " +
  "The level starts at the final error of the better baseline.";

function forest(difference, reach) {
  const width = 104,
    at = (v) => width / 2 + (v / reach) * (width / 2 - 6);
  const { mean, low, high } = difference,
    better = high !== null && high < 0,
    worse = low !== null && low > 0;
  return s(
    "svg",
    {
      class: `forest ${better ? "better" : worse ? "worse" : ""}`,
      viewBox: `0 0 ${width} 16`,
      width,
      height: 16,
      "aria-hidden": "true",
    },
    s("path", { d: `M${width / 2},1v14`, class: "zero" }),
    low === null
      ? null
      : s("path", { d: `M${at(low)},8H${at(high)}M${at(low)},5v6M${at(high)},5v6`, class: "interval" }),
    s("path", { d: MARKS.diamond(3.6), transform: `translate(${at(mean)},8)`, class: "mean" }),
  );
}

function differenceCell(difference, reach, kind) {
  if (!difference) return h("span", { class: "muted" }, "–");
  const { mean, low, high, seeds, wins, relative, p } = difference;
  const sure = low === null ? "" : high < 0 ? "better" : low > 0 ? "worse" : "open";
  const words = { better: "▼ better", worse: "▲ worse", open: "◇ open", "": "" }[sure];
  return h(
    "div",
    { class: `difference ${sure}`, "data-mean": mean, "data-low": low, "data-high": high },
    h(
      "div",
      {},
      h("strong", {}, signed(mean)),
      kind === "rmse" ? h("span", { class: "muted" }, ` ${percent(relative)}`) : null,
      h("span", { class: "verdict" }, ` ${words}`),
    ),
    forest(difference, reach),
    h(
      "div",
      { class: "muted" },
      low === null ? `${seeds} ${seeds === 1 ? "seed" : "seeds"}, no interval` : `[${signed(low)}, ${signed(high)}]`,
      ` · ${wins}/${seeds} seeds, p\u00a0=\u00a0${number(p, 2)}`,
    ),
  );
}

function comparison(kind) {
  const entry = experiment(),
    rows = entry.table[measureOf(kind)].filter((row) => isShown(entry, row.group));
  const baselines = DATA.baselines.filter((name) => rows.some((row) => row[`area-${name}`]));
  const all = rows.flatMap((row) => baselines.map((name) => row[`area-${name}`])).filter(Boolean);
  const reach = Math.max(
    1e-12,
    ...all
      .flatMap((d) => [d.mean, d.low, d.high])
      .filter((v) => v !== null)
      .map(Math.abs),
  );
  const adding = rows.filter((row) => entry.groups[row.group].has_rounds),
    best = Math.min(...adding.map((row) => row.area[0]).filter((v) => v !== null));
  const pm = ([mean, error], strong) =>
    h(
      "span",
      { "data-value": mean },
      strong ? h("strong", {}, number(mean)) : number(mean),
      error === null ? "" : h("span", { class: "muted" }, ` ± ${number(error, 2)}`),
    );
  return h(
    "figure",
    { "data-figure": `comparison-${kind}` },
    h("h3", {}, kindName(kind), h("small", {}, ` ${unit(kind)}`)),
    table(
      [
        "method",
        "seeds",
        "mean over the horizon",
        ...baselines.map((b) => `minus ${DATA.methods[b].label}, paired`),
        "at the end",
        ...baselines.map((b) => `minus ${DATA.methods[b].label} at the end`),
      ],
      rows.map((row) => {
        const group = entry.groups[row.group];
        return [
          h("span", { class: "method" }, swatch(styleOf(entry.groups, row.group)), group.label),
          String(row.seeds),
          pm(row.area, row.area[0] === best),
          ...baselines.map((name) =>
            group.method === name
              ? h("span", { class: "muted" }, "itself")
              : differenceCell(row[`area-${name}`], reach, kind),
          ),
          pm(row.last),
          ...baselines.map((name) => {
            const d = row[`last-${name}`];
            return group.method === name
              ? h("span", { class: "muted" }, "itself")
              : d
                ? h(
                    "span",
                    { "data-mean": d.mean },
                    signed(d.mean),
                    d.low === null ? "" : h("div", { class: "muted" }, `[${signed(d.low)}, ${signed(d.high)}]`),
                  )
                : "–";
          }),
        ];
      }),
      { class: "comparison", "data-measure": measureOf(kind), "aria-label": `Comparison in ${measureName(kind)}` },
    ),
  );
}

// Methods against the baselines over all experiments at once.
const TOGETHER =
  "All experiments with exactly one group of each: the interquartile mean of the paired differences in the mean over " +
  "the horizon (RMSE relative to the baseline, NLL in nats; below zero is better), and the probability that the method " +
  "is better on a random seed of a random experiment. Intervals are 95 % stratified bootstrap intervals: seeds are drawn " +
  "anew within every experiment. p is that of a sign test over all pairs.";

function together() {
  const rows = DATA.together.filter((row) => ["rmse", "nll"].some((kind) => row.measure === measureOf(kind)));
  if (!rows.length) return null;
  const interval = ([value, low, high], show) =>
    low === null ? show(value) : `${show(value)} [${show(low)}, ${show(high)}]`;
  return h(
    "figure",
    { "data-figure": "together" },
    h("h3", {}, "All experiments together"),
    h("p", { class: "lead" }, TOGETHER),
    table(
      ["method", "against", "measure", "experiments", "pairs", "middle difference", "probability of improvement", "p"],
      rows.map((row) => [
        DATA.methods[row.method].label,
        DATA.methods[row.baseline].label,
        DATA.measures[row.measure].label,
        String(row.experiments),
        String(row.seeds),
        interval(row.middle, row.measure.startsWith("rmse") ? percent : signed),
        interval(row.better, (v) => number(v, 2)),
        number(row.p, 2),
      ]),
      { "data-table": "together" },
    ),
  );
}

// Added tasks until a curve first reaches a level.
function tasksNeeded(group, measure, level) {
  return group.measures[measure].seeds.map((row) => {
    const k = row.findIndex((v) => v !== null && v <= level);
    return k < 0 ? Infinity : group.added[k];
  });
}
function median(values) {
  const sorted = [...values].sort((a, b) => a - b),
    n = sorted.length;
  return n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// The level that matters most: the final error of the better baseline.
function usualLevel(entry, measure) {
  const ends = (groups) => groups.map((g) => g.measures[measure].mean.at(-1)).filter((v) => v !== null);
  const baselines = ends(entry.groups.filter((g) => DATA.baselines.includes(g.method)));
  const all = ends(entry.groups.filter((g) => g.has_rounds));
  return baselines.length ? Math.min(...baselines) : Math.max(...all);
}

function efficiency() {
  const entry = experiment(),
    measure = measureOf("rmse"),
    groups = shownGroups(entry).filter(([g]) => g.has_rounds);
  const values = groups.flatMap(([g]) => g.measures[measure].mean).filter((v) => v !== null);
  if (!values.length) return null;
  const low = Math.min(...values),
    high = Math.max(...values),
    key = `${entry.name}/${measure}`;
  const level = state.level[key] ?? usualLevel(entry, measure),
    last = Math.max(...groups.flatMap(([g]) => g.added), 1);
  const toSlider = (v) => Math.round((1000 * Math.log(v / low)) / Math.log(high / low || 2)),
    fromSlider = (v) => low * (high / low || 1) ** (v / 1000);
  const body = h("div", {});
  const show = (at) => {
    const rows = groups.map(([g, i]) => ({ group: g, i, needed: tasksNeeded(g, measure, at) }));
    replace(
      body,
      dots(entry, rows, last, at),
      numbers(() =>
        table(
          ["method", "median", "seeds that get there", "by seed"],
          rows.map(({ group, needed }) => [
            group.label,
            h("span", { "data-needed": median(needed) }, number(median(needed))),
            `${needed.filter(Number.isFinite).length} of ${needed.length}`,
            needed.map((v) => number(v)).join(", "),
          ]),
          { "data-table": "needed" },
        ),
      ),
    );
    output.textContent = number(at, 3);
  };
  const output = h("output", {}, number(level));
  const slider = h("input", {
    type: "range",
    min: 0,
    max: 1000,
    value: toSlider(level),
    "aria-label": "Error to reach",
    oninput: (event) => {
      state.level[key] = fromSlider(Number(event.target.value));
      show(state.level[key]);
    },
  });
  const figure = h(
    "figure",
    { "data-figure": "needed" },
    h("h3", {}, "Tasks needed to reach an error"),
    h("p", { class: "lead" }, NEEDED),
    h(
      "div",
      { class: "row" },
      h("label", { class: "slide" }, h("span", { class: "name" }, "RMSE to reach"), slider, output),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            delete state.level[key];
            render();
          },
        },
        "Reset",
      ),
    ),
    body,
  );
  show(level);
  return figure;
}

function dots(entry, rows, last, level) {
  const never = last * 1.12,
    at = (v) => (Number.isFinite(v) ? v : never),
    marks = [],
    points = [];
  rows.forEach(({ group, i, needed }, row) => {
    const style = styleOf(entry.groups, i),
      y = rows.length - 1 - row,
      middle = median(needed),
      seen = {};
    marks.push({
      kind: "line",
      points: [
        [0, y],
        [at(middle), y],
      ],
      color: style.color,
      width: 9,
      opacity: 0.28,
    });
    marks.push({
      kind: "line",
      points: [
        [at(middle), y - 0.28],
        [at(middle), y + 0.28],
      ],
      color: style.color,
      width: 3,
    });
    needed.forEach((v, k) => {
      const n = (seen[v] = (seen[v] || 0) + 1) - 1,
        shift = Math.ceil(n / 2) * (n % 2 ? 0.13 : -0.13);
      marks.push({
        kind: "marks",
        points: [[at(v), y + Math.max(-0.4, Math.min(0.4, shift))]],
        color: style.color,
        mark: style.mark,
        size: 4,
      });
      points.push({
        x: at(v),
        y,
        series: group.label,
        text: `${group.label}, seed ${group.seeds[k]}\n${Number.isFinite(v) ? `${v} added tasks` : "never gets there"}`,
      });
    });
  });
  const medians = rows.map(({ group, needed }) => `${group.label} ${number(median(needed))}`).join(", ");
  const longest = Math.min(16, Math.max(...rows.map(({ group }) => group.label.length)));
  return plot({
    height: 70 + 34 * rows.length,
    left: 18 + 7 * longest,
    label: `Added tasks until the RMSE is at most ${number(level)}: ${medians}`,
    x: {
      label: "added tasks",
      domain: [-0.2, never * 1.05],
      ticks: [...linearTicks(0, last, Math.min(6, last)), never],
      format: (v) => (v === never ? "never" : number(v)),
    },
    y: {
      domain: [-0.6, rows.length - 0.4],
      ticks: rows.map((_, k) => k),
      format: (k) => {
        const label = rows[rows.length - 1 - k].group.label;
        return label.length > 16 ? `${label.slice(0, 15)}…` : label;
      },
    },
    marks,
    points,
  });
}

// How far to trust an interval of few seeds.
function coverage() {
  const cases = DATA.coverage.map(([n, share]) => `${number(100 * share)}\u00a0% of cases with ${n}`).join(", ");
  return `Such intervals are too short when seeds are few: for normal differences they contain the true mean in ${cases} seeds.`;
}

function compareSection() {
  return [
    h("p", { class: "lead" }, PAIRED, coverage()),
    comparison("rmse"),
    comparison("nll"),
    together(),
    efficiency(),
  ];
}
