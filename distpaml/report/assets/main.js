// The page about runs and sweeps: headline, controls, sections, and the live refresh of the dashboard.
const SECTIONS = [
  ["curves", "Learning curves", "Curves", curvesSection],
  ["comparison", "Comparison on the same seeds", "Comparison", compareSection],
  ["claims", "Claims of the paper", "Claims", claimsSection],
  ["detail", "A run in detail", "Run detail", detailSection],
  ["search", "Search", "Search", searchSection, () => DATA.searches.length],
  ["times", "Time and reliability", "Time", timesSection],
  ["runs", "Runs", "Runs", runsSection],
];

// The paired difference of two rows of the table, whichever of them is the baseline.
function pairedOf(entry, row, other, what) {
  const name = (r) => entry.groups[r.group].method,
    straight = row[`${what}-${name(other)}`],
    turned = other[`${what}-${name(row)}`];
  if (straight) return straight;
  return turned ? { low: turned.high, high: turned.low } : null;
}

// "PAML-pool 0.15, 12 % below LHS": the best row and its distance to the next.
function leader(entry, rows, what) {
  const ranked = rows.filter((r) => r[what][0] !== null).sort((a, b) => a[what][0] - b[what][0]),
    [best, next] = ranked;
  if (!best) return null;
  const label = entry.groups[best.group].label,
    value = best[what][0];
  if (!next) return { best, words: `${label}, ${number(value)}` };
  const share = Math.abs((100 * (next[what][0] - value)) / next[what][0]),
    gap = share < 0.1 ? "level with" : `${number(share, 2)}\u00a0% below`,
    difference = pairedOf(entry, best, next, what),
    sure = difference && difference.low !== null && (difference.low > 0 || difference.high < 0);
  const open = sure ? "" : " (undecided)";
  return { best, words: `${label}, ${number(value)}, ${gap} ${entry.groups[next.group].label}${open}` };
}

// The best method over the horizon and at the end, also where it is a baseline.
function headline() {
  const entry = experiment(),
    rows = entry.table[measureOf("rmse")].filter((r) => entry.groups[r.group].has_rounds),
    horizon = leader(entry, rows, "area"),
    end = leader(entry, rows, "last");
  if (!horizon || !end) return "No run has finished yet.";
  return `Lowest RMSE over the horizon: ${horizon.words}. At the end: ${end.words}.`;
}

// What to expect of each method that is here, and how often it chose what it knew.
function expectations(entry) {
  const methods = [...new Set(entry.groups.map((g) => g.method))].filter((m) => DATA.methods[m]);
  return h(
    "ul",
    { class: "expect", "aria-label": "What to expect of the methods" },
    methods.map((name) => {
      const runs = entry.runs.filter((r) => entry.groups[r.group].method === name),
        chosen = runs.flatMap((r) => r.tasks.map((task, k) => [task[0], r.repeats[k]])).filter(([round]) => round),
        again = chosen.filter(([, known]) => known !== null).length;
      return h(
        "li",
        {},
        h("b", {}, DATA.methods[name].label),
        ` ${DATA.methods[name].expect}`,
        again
          ? h("span", { class: "again" }, ` ${again} of ${chosen.length} choices nearly repeat a known task.`)
          : null,
      );
    }),
  );
}

function hero() {
  const entry = experiment(),
    seeds = Math.max(...entry.groups.map((g) => g.seeds.length));
  return h(
    "section",
    { class: "hero" },
    h("p", { class: "eyebrow" }, plain(entry.name)),
    h("h1", {}, headline()),
    h(
      "p",
      { class: "facts" },
      Object.entries(entry.facts).map(([k, v]) => h("span", {}, `${k} `, h("b", {}, plain(v)))),
    ),
    expectations(entry),
    h(
      "div",
      { class: "tiles" },
      tile(
        `${DATA.complete} / ${DATA.runs + DATA.waiting.length}`,
        "runs finished",
        DATA.complete < DATA.runs + DATA.waiting.length ? "warn" : "",
      ),
      tile(String(DATA.experiments.length), DATA.experiments.length === 1 ? "experiment" : "experiments"),
      tile(String(new Set(entry.groups.map((g) => g.method)).size), "methods here"),
      tile(String(seeds), seeds === 1 ? "seed" : "seeds"),
      DATA.problems.length
        ? tile(String(DATA.problems.length), "problems, listed below", "bad")
        : tile("0", "problems"),
    ),
  );
}

function controls() {
  const entry = experiment(),
    many = DATA.experiments.length > 4 || innerWidth < 700,
    pick = (i) => {
      state.experiment = Number(i);
      state.run = null;
      state.round = null;
      render();
    };
  const options = DATA.experiments.map((e, i) => [i, plain(e.name)]);
  return h(
    "div",
    { class: "controls", id: "controls", role: "toolbar", "aria-label": "What is shown" },
    DATA.experiments.length > 1
      ? many
        ? select("Experiment", options, state.experiment, pick)
        : choice("Experiment", options, state.experiment, pick)
      : null,
    choice(
      "Errors divided by",
      [
        ["", "test outputs", "Fair: the same divisor for all methods"],
        ["_paper", "training outputs", "As in the authors' code"],
      ],
      state.measure,
      (v) => {
        state.measure = v;
        render();
      },
    ),
    choice(
      "Over test tasks",
      [
        ["", "mean"],
        ["_median", "median"],
      ],
      state.over,
      (v) => {
        state.over = v;
        render();
      },
    ),
    chips(entry),
  );
}

function render(focus) {
  redraw(() => {
    if (!DATA.experiments.length) {
      const empty = h(
        "section",
        { class: "hero" },
        h("h1", {}, "There is no finished round yet."),
        h("p", {}, DATA.paths.join(", ")),
      );
      return { children: [empty, problemList(), waitingList()], links: [] };
    }
    state.experiment = Math.min(state.experiment, DATA.experiments.length - 1);
    const searched = DATA.searches.some((search) => search.runs.includes(experiment().name)),
      shown = SECTIONS.filter(([, , , , when]) => !when || when()).sort(
        ([a], [b]) => searched && (b === "search") - (a === "search"),
      );
    return {
      children: [hero(), problemList(), waitingList(), controls(), ...shown.map(section)],
      links: shown.map(([id, , short]) => [id, short]),
    };
  }, focus);
}

async function refresh() {
  try {
    const answer = await fetch("data.json", { cache: "no-store", headers: { "If-None-Match": refresh.tag || "" } });
    if (answer.status === 200) {
      refresh.tag = answer.headers.get("ETag");
      const fresh = await answer.json();
      if (fresh.written !== DATA.written) {
        const name = DATA.experiments.length ? experiment().name : null;
        DATA = fresh;
        const at = DATA.experiments.findIndex((e) => e.name === name);
        state.experiment = Math.max(0, at);
        render();
      }
    }
    by("live").textContent = "● live";
    by("live").className = "on";
  } catch {
    by("live").textContent = "○ no connection";
    by("live").className = "off";
  }
  setTimeout(refresh, 2000);
}
if ("live" in document.documentElement.dataset) refresh();
render();
