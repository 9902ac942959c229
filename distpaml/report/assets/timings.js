// Times by stage, failures, and the list of runs.
const STAGE = ["choose", "simulate", "fit", "evaluate"];

function stagesFigure() {
  const entry = experiment(),
    rows = shownGroups(entry),
    names = [...new Set([...STAGE, ...rows.flatMap(([g]) => Object.keys(g.stages))])].filter((n) =>
      rows.some(([g]) => n in g.stages),
    );
  const total = (g) => Object.values(g.stages).reduce((a, b) => a + b, 0),
    most = Math.max(...rows.map(([g]) => total(g)), 1e-9);
  return h(
    "figure",
    { "data-figure": "stages" },
    h("h3", {}, "Seconds of a run, by stage"),
    h(
      "div",
      { class: "key" },
      names.map((name, k) => h("span", {}, h("i", { class: `stage s${k % 5}` }), name)),
    ),
    h(
      "div",
      {
        class: "bars",
        role: "img",
        "aria-label": `Mean seconds by stage: ${rows.map(([g]) => `${g.label} ${duration(total(g))}`).join(", ")}`,
      },
      rows.map(([g]) =>
        h(
          "div",
          { class: "bar-row" },
          h("span", {}, g.label),
          h(
            "div",
            { class: "track" },
            names.map((name, k) =>
              h("i", {
                class: `stage s${k % 5}`,
                title: `${name}: ${duration(g.stages[name])}`,
                style: { width: `${(100 * (g.stages[name] || 0)) / most}%` },
              }),
            ),
          ),
          h("b", {}, duration(total(g))),
        ),
      ),
    ),
    numbers(() =>
      table(
        ["method", ...names, "all", "rounds per hour of work"],
        rows.map(([g]) => [
          g.label,
          ...names.map((n) => h("span", { "data-value": g.stages[n] }, duration(g.stages[n]))),
          duration(total(g)),
          number(g.rounds_per_hour),
        ]),
        { "data-table": "stages" },
      ),
    ),
  );
}

function sweepFigure(sweep) {
  const stopped = sweep.counts["trial stopped"] || 0,
    failed = sweep.counts["trial failed"] || 0,
    retried = sweep.counts["trial retried"] || 0;
  return h(
    "figure",
    { "data-figure": "sweep" },
    h("h3", {}, `Sweep ${sweep.name}`),
    h(
      "div",
      { class: "tiles" },
      tile(`${sweep.complete} / ${sweep.trials}`, "trials finished"),
      tile(duration(sweep.wall), "wall time"),
      tile(duration(sweep.work), "of work"),
      tile(number(sweep.at_once, 2), "at once, on average"),
      tile(number(sweep.trials_per_hour), "trials per hour"),
      tile(String(failed), "failures", failed ? "bad" : ""),
      tile(String(retried), "retries", retried ? "warn" : ""),
      stopped ? tile(String(stopped), "stopped early") : null,
    ),
    sweep.troubles.length
      ? table(
          ["trial", "event", "time", "message"],
          sweep.troubles.map((e) => [e.trial || "–", e.event, e.time, e.message]),
          { "data-table": "events" },
        )
      : h(
          "p",
          { class: "caption" },
          Object.keys(sweep.counts).length ? "No trial failed or was retried." : "The sweep left no events.",
        ),
  );
}

function timesSection() {
  return [stagesFigure(), DATA.sweeps.map(sweepFigure)];
}

function runsSection() {
  const entry = experiment();
  return [
    h(
      "details",
      { class: "numbers" },
      h("summary", {}, `${entry.runs.length} runs of ${entry.name}`),
      table(
        ["run", "method", "seed", "rounds", "state", "rounds with narrowed or clipped candidates"],
        entry.runs.map((r) => [
          r.name,
          entry.groups[r.group].label,
          String(r.seed),
          String(r.rounds),
          r.complete ? "finished" : "not finished",
          r.fallbacks.join(", ") || "–",
        ]),
        { "data-table": "runs" },
      ),
    ),
  ];
}

function waitingList() {
  if (!DATA.waiting.length) return null;
  return h(
    "p",
    { class: "note", id: "waiting" },
    `${DATA.waiting.length} ${DATA.waiting.length === 1 ? "run has" : "runs have"} no finished round yet: ${DATA.waiting
      .slice(0, 6)
      .map((path) => path.split("/").at(-1))
      .join(", ")}${DATA.waiting.length > 6 ? ", …" : ""}.`,
  );
}

function problemList() {
  if (!DATA.problems.length) return null;
  return h(
    "section",
    { class: "problems", id: "problems", "aria-label": "Problems" },
    h("h2", {}, `${DATA.problems.length} ${DATA.problems.length === 1 ? "problem" : "problems"}`),
    h(
      "ul",
      {},
      DATA.problems.slice(0, 50).map((p) => h("li", {}, h("code", {}, p.path), " ", p.said)),
    ),
    DATA.problems.length > 50 ? h("p", {}, `and ${DATA.problems.length - 50} more.`) : null,
  );
}
