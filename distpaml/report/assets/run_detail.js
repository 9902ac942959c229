// A run in detail: its choice, the chosen tasks, and the figures of latent.js and predictions.js.
function detailedRuns(entry) {
  return entry.runs.filter((run) => DATA.details[run.id]);
}

function currentRun() {
  const entry = experiment(),
    runs = detailedRuns(entry);
  return runs.find((run) => run.path === state.run) || runs.find((run) => run.group === entry.best) || runs[0];
}

function runPicker() {
  const entry = experiment(),
    runs = detailedRuns(entry),
    run = currentRun(),
    rest = entry.runs.length - runs.length;
  return h(
    "div",
    { class: "row" },
    select(
      "Run",
      runs.map((r) => [
        r.path,
        `${entry.groups[r.group].label}, seed ${r.seed}${r.complete ? "" : ` (${r.rounds} rounds so far)`}`,
      ]),
      run.path,
      (path) => {
        state.run = path;
        state.round = null;
        render();
      },
    ),
    rest > 0
      ? h("span", { class: "muted" }, `${rest} more by `, h("code", {}, "python -m distpaml.report DIR/trials/NAME"))
      : null,
  );
}

// One line per parameter of a task [round, …].
function parameterWords(entry, task) {
  const hidden = (p) => (entry.hidden.includes(p.name) ? " (hidden)" : "");
  return entry.parameters.map((p, k) => `${plain(p.name)} ${number(task[1 + k])}${hidden(p)}`);
}

function chosenFigure() {
  const entry = experiment(),
    count = entry.parameters.length,
    run = currentRun();
  let [ix, iy] = state.axes.map((a) => Math.min(a, count - 1));
  const X = entry.parameters[ix],
    Y = count > 1 ? entry.parameters[iy === ix ? (ix + 1) % count : iy] : null;
  if (Y) iy = entry.parameters.indexOf(Y);
  const pad = (p) => {
    const m = 0.05 * (p.high - p.low);
    return [p.low - m, p.high + m];
  };
  const panels = shownGroups(entry)
    .filter(([g]) => g.has_rounds)
    .sort(([, i], [, k]) => (k === entry.best) - (i === entry.best))
    .slice(0, 6)
    .map(([group, i]) => {
      const style = styleOf(entry.groups, i),
        runs = entry.runs.filter((r) => r.group === i),
        front = runs.find((r) => r.seed === (run ? run.seed : 0)) || runs[0];
      const marks = [],
        points = [],
        at = (task) => [task[1 + ix], Y ? task[1 + iy] : front.tasks.indexOf(task)];
      const depth = Math.max(1, ...runs.map((r) => r.tasks.length));
      for (const other of runs)
        if (other !== front)
          marks.push({
            kind: "marks",
            points: other.tasks.filter((t) => t[0]).map((t, k) => (Y ? at(t) : [t[1 + ix], k])),
            color: style.color,
            mark: style.mark,
            size: 2.6,
            opacity: 0.28,
          });
      if (Y)
        marks.push({
          kind: "line",
          points: front.tasks.filter((t) => t[0]).map(at),
          color: style.color,
          width: 0.8,
          opacity: 0.5,
        });
      for (const task of front.tasks) {
        const [a, b] = at(task);
        marks.push({
          kind: "marks",
          points: [[a, b]],
          mark: task[0] ? style.mark : "diamond",
          size: task[0] ? 4.6 : 4,
          color: style.color,
          hollow: !task[0],
          line: 1.6,
        });
        if (task[0]) marks.push({ kind: "text", x: a, y: b, dx: 6, dy: -5, text: String(task[0]), class: "order" });
        const origin = `${group.label}, ${task[0] ? `round ${task[0]}` : "initial"}`,
          known = front.repeats[front.tasks.indexOf(task)];
        if (known !== null)
          marks.push({
            kind: "marks",
            points: [[a, b]],
            mark: "circle",
            size: 8,
            color: "var(--bad)",
            hollow: true,
            line: 1.2,
          });
        const again = known === null ? [] : [`nearly repeats task ${known}`];
        points.push({
          x: a,
          y: b,
          series: "tasks",
          text: [origin, ...parameterWords(entry, task), ...again].join("\n"),
        });
      }
      return h(
        "div",
        { class: "panel", "data-figure": `chosen-${i}` },
        plot({
          height: 250,
          title: `${group.label}, seed ${front.seed}`,
          label: `Tasks that ${group.label} chose with seed ${front.seed}, in ${plain(X.name)}${Y ? ` and ${plain(Y.name)}` : ""}`,
          x: { label: withUnit(X), domain: pad(X) },
          y: { label: Y ? withUnit(Y) : "order", domain: Y ? pad(Y) : [-1, depth] },
          marks,
          points,
        }),
      );
    });
  const axes = entry.parameters.map((p, i) => [i, plain(p.name)]);
  return h(
    "div",
    {},
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, "Chosen tasks"),
      count > 2
        ? h(
            "div",
            { class: "row" },
            select("Across", axes, ix, (v) => {
              state.axes[0] = Number(v);
              render();
            }),
            select("Up", axes, iy, (v) => {
              state.axes[1] = Number(v);
              render();
            }),
          )
        : null,
    ),
    h(
      "p",
      { class: "caption" },
      "Hollow diamonds are the initial tasks, numbers the rounds of the choices; faint marks are choices of the other seeds. " +
        "A ring marks a choice that nearly repeats a known task.",
    ),
    h("div", { class: "many" }, panels),
  );
}

function detailSection() {
  const run = currentRun();
  if (!run) return [h("p", { class: "lead" }, "There is no run of this experiment that could be read.")];
  const detail = DATA.details[run.id];
  return [
    runPicker(),
    detail.lacking
      ? h("p", { class: "note" }, `Predictions and rollouts of this run cannot be made here. ${detail.lacking}`)
      : null,
    h("div", { class: "two uneven" }, latentFigure(), chosenFigure()),
    predictionFigure(),
    rolloutFigure(),
    (detail.image_figures || []).map((figure) =>
      h(
        "figure",
        { "data-figure": "image" },
        h("h3", {}, figure.title),
        h("img", { src: figure.image, alt: figure.title }),
      ),
    ),
  ];
}
