// Errors and coverage of left-out tasks against the number of tasks.
function sizeAxis() {
  const sizes = DATA.learning.tasks,
    low = sizes[0],
    high = Math.max(sizes.at(-1), low + 1),
    every = Math.ceil((high - low + 1) / 10);
  return {
    label: "observed tasks",
    domain: [low - 0.3, high + 0.3],
    ticks: Array.from({ length: high - low + 1 }, (_, k) => low + k).filter((n) => (high - n) % every === 0),
  };
}

function errorFigure() {
  const { tasks, mean, each } = DATA.learning,
    all = each.flat(),
    kind = Math.max(...all) > 8 * Math.min(...all) ? "log" : "linear";
  const dots = tasks.flatMap((n, k) => each[k].map((e) => [n, e])),
    domain = extent(all, kind, 0.08);
  return h(
    "figure",
    { "data-figure": "error" },
    h("h3", {}, "Error of a left-out task"),
    plot({
      label: `Error of left-out tasks against the number of tasks; the mean ends at ${number(mean.at(-1))}`,
      x: sizeAxis(),
      y: { label: "RMSE, std. dev.", kind, domain: kind === "log" ? domain : [0, domain[1]] },
      marks: [
        { kind: "marks", points: dots, color: "var(--muted)", size: 2.4, opacity: 0.55, line: 0.4 },
        { kind: "line", points: tasks.map((n, k) => [n, mean[k]]), color: "var(--blue)", class: "curve" },
        { kind: "marks", points: tasks.map((n, k) => [n, mean[k]]), color: "var(--blue)" },
      ],
      points: tasks.map((n, k) => ({
        x: n,
        y: mean[k],
        series: "mean",
        text: `${n} tasks\nmean error ${number(mean[k])}\nworst ${number(Math.max(...each[k]))}`,
      })),
    }),
    h(
      "p",
      { class: "caption" },
      "Each task is predicted one step ahead by a model of the others, its latent inferred from its own recording. ",
      "The line is the mean over tasks, dots are tasks; the unit is the standard deviation of the one-step changes. ",
      "Newer tasks are often harder, so the headline compares the same tasks with and without those that followed.",
    ),
  );
}

function coverageFigure() {
  const { tasks, coverage } = DATA.learning,
    x = sizeAxis();
  return h(
    "figure",
    { "data-figure": "coverage" },
    h("h3", {}, "Coverage"),
    plot({
      left: 60,
      label: `Share of changes within 95 % intervals against the number of tasks; ends at ${number(coverage.at(-1))}`,
      x,
      y: {
        label: "within 95 % intervals",
        domain: [Math.min(0.5, ...coverage.map((c) => c - 0.05)), 1.02],
        format: (v) => `${Math.round(100 * v)} %`,
      },
      marks: [
        { kind: "line", points: x.domain.map((n) => [n, 0.95]), color: "var(--muted)", width: 1.4, dash: "4 4" },
        { kind: "line", points: tasks.map((n, k) => [n, coverage[k]]), color: "var(--green)", class: "curve" },
        { kind: "marks", points: tasks.map((n, k) => [n, coverage[k]]), color: "var(--green)", mark: "diamond" },
      ],
      points: tasks.map((n, k) => ({
        x: n,
        y: coverage[k],
        series: "coverage",
        text: `${n} tasks\n${number(100 * coverage[k])} % within 95 % intervals`,
      })),
    }),
    h(
      "p",
      { class: "caption" },
      "Below the dashed line the model is too sure of itself, as it often is with few tasks; above it, too careful.",
    ),
  );
}

function learningSection() {
  const { learning, least, counts } = DATA;
  if (!learning) return h("p", { class: "note" }, `This takes ${least} observed tasks; there are ${counts.observed}.`);
  return h("div", { class: "two" }, errorFigure(), coverageFigure());
}
