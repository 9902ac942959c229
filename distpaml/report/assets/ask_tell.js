// The page about an experiment for ask and tell: what next, whether more tasks pay, latents, recordings, tasks.
const state = { output: 0, colour: 0 };
const FEW = 8; // recordings that are shown at once
const SECTIONS = [
  ["next", "What would be asked next", "Next", nextSection],
  ["learning", "Do more tasks pay?", "Learning", learningSection],
  ["recordings", "Recordings", "Recordings", recordingsSection, () => DATA.recordings.length],
  ["tasks", "Tasks", "Tasks", tasksSection, () => DATA.tasks.length],
];
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function headline() {
  const { learning, counts, least } = DATA;
  if (learning && learning.change) return `${capital(learning.change)}.`;
  if (learning) return "Too few tasks are observed to tell whether more of them pay.";
  return `${counts.observed} of the ${least} observed tasks that it takes to leave one out.`;
}

function hero() {
  const { counts, learning } = DATA,
    at = learning ? learning.tasks.length - 1 : 0;
  return h(
    "section",
    { class: "hero" },
    h("p", { class: "eyebrow" }, plain(DATA.name)),
    h("h1", {}, headline()),
    h(
      "div",
      { class: "tiles" },
      tile(String(counts.observed), counts.observed === 1 ? "task observed" : "tasks observed"),
      counts.out ? tile(String(counts.out), "out") : null,
      counts.failed ? tile(String(counts.failed), "failed", "warn") : null,
      tile(String(DATA.transitions), "transitions"),
      learning ? tile(number(learning.mean[at]), "error of a left-out task, std. dev.") : null,
      learning ? tile(`${Math.round(100 * learning.coverage[at])} %`, "within 95 % intervals") : null,
    ),
  );
}

function nextSection() {
  if (!DATA.latent) return nextFigure();
  return h("div", { class: "two uneven" }, nextFigure(), latentFigure());
}

function nextFigure() {
  const { tasks, why } = DATA.next,
    model = tasks.some((task) => task.utility !== null),
    costs = tasks.some((task) => task.cost !== null);
  const head = ["", "task", ...(model ? [plain(DATA.utility)] : []), ...(costs ? ["cost"] : [])];
  return h(
    "figure",
    { "data-figure": "next" },
    tasks.length
      ? table(
          head,
          tasks.map((task, i) => [
            i ? `then ${i + 1}` : "next",
            task.words,
            ...(model ? [number(task.utility)] : []),
            ...(costs ? [number(task.cost)] : []),
          ]),
          { "aria-label": "What would be asked next" },
        )
      : null,
    h("p", { class: "caption" }, why),
  );
}

function latentFigure() {
  const { latent, descriptors } = DATA,
    flat = latent.of === 1,
    dimension = Math.min(state.colour, descriptors.length - 1),
    byId = new Map(DATA.tasks.map((task) => [task.id, task]));
  const value = (id) => byId.get(id).values[dimension],
    values = latent.tasks.map(value),
    [low, high] = [Math.min(...values), Math.max(...values)],
    colour = (v) => ramp(high > low ? (v - low) / (high - low) : 0.5);
  const at = (row, v) => (flat ? [row[0], v] : row);
  const middle = (low + high) / 2,
    places = latent.mean.map((row, i) => at(row, values[i]));
  const next = latent.next.map((row) => at(row, middle)),
    candidates = flat ? [] : latent.candidates;
  const every = [...places, ...next, ...candidates],
    [x, y] = [0, 1].map((k) =>
      extent(
        every.map((p) => p[k]),
        "linear",
        0.08,
      ),
    );
  const marks = candidates.map(([a, b, rank]) => ({
    kind: "marks",
    points: [[a, b]],
    color: "var(--orange)",
    size: 1 + 2.6 * rank * rank,
    opacity: 0.15 + 0.5 * rank * rank,
    line: 0,
  }));
  places.forEach(([a, b], i) => {
    const [sx, sy] = latent.spread[i];
    if (!flat) marks.push({ kind: "ellipse", x: a, y: b, rx: 2 * sx, ry: 2 * sy, color: colour(values[i]) });
    marks.push({ kind: "marks", points: [[a, b]], size: 5, color: colour(values[i]), stroke: "var(--ink)", line: 1.1 });
    marks.push({ kind: "text", x: a, y: b, dx: 8, dy: -6, text: String(latent.tasks[i]), class: "order" });
  });
  next.forEach((row, i) =>
    marks.push({
      kind: "marks",
      points: [row],
      mark: "cross",
      size: i ? 4 : 7,
      color: "var(--accent)",
      line: i ? 1.8 : 3.4,
    }),
  );
  const points = [
    ...places.map(([a, b], i) => ({
      x: a,
      y: b,
      series: "tasks",
      text: `task ${latent.tasks[i]}\n${byId.get(latent.tasks[i]).words}`,
    })),
    ...next.map(([a, b], i) => ({
      x: a,
      y: b,
      series: "next",
      text: `${i ? "then" : "next"}\n${DATA.next.tasks[i].words}`,
    })),
  ];
  const names = latent.dimensions.map((d) => `h${"₁₂₃₄₅₆₇₈₉"[d] || d + 1}`);
  return h(
    "figure",
    { "data-figure": "latent" },
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, "Where the tasks are"),
      descriptors.length > 1
        ? select(
            "Colour",
            descriptors.map((d, i) => [i, plain(d.name)]),
            dimension,
            (v) => {
              state.colour = Number(v);
              render();
            },
          )
        : null,
    ),
    plot({
      square: true,
      height: 420,
      label: `Latent space: q(h) of ${places.length} tasks, and where the next is expected`,
      x: { label: names[0], domain: x },
      y: { label: flat ? withUnit(descriptors[dimension]) : names[1], domain: y },
      marks,
      points,
    }),
    rampKey(low, high, withUnit(descriptors[dimension])),
    h(
      "p",
      { class: "caption" },
      "Numbers are tasks; ellipses are two standard deviations of q(h), often too small to be seen. ",
      candidates.length ? "Dots are tasks that could be asked for, larger where their utility ranks higher. " : "",
      next.length ? "The large cross is the task that would be asked next, small ones those after it. " : "",
      latent.of > 2 ? `These are the two of ${latent.of} dimensions in which tasks differ most.` : "",
    ),
  );
}

function recordingsSection() {
  const output = Math.min(state.output, DATA.states.length - 1),
    byId = new Map(DATA.tasks.map((task) => [task.id, task])),
    shown = DATA.recordings.toReversed();
  const values = shown.flatMap((r) => r.pieces.flatMap((piece) => piece.map((row) => row[1 + output]))),
    y = extent(values, "linear", 0.06);
  const panels = shown.map(({ task, pieces }) => {
    const last = pieces.at(-1).at(-1)[0],
      lines = pieces.map((piece) => piece.map((row) => [row[0], row[1 + output]]));
    return h(
      "div",
      { class: "panel", "data-figure": `recording-${task}` },
      h("h4", {}, `${task}: ${byId.get(task).words}`),
      plot({
        height: 150,
        bare: true,
        left: 48,
        label: `${plain(DATA.states[output].name)} of task ${task} over ${number(last)} s`,
        x: { domain: [0, last || 1] },
        y: { domain: y },
        marks: lines.map((points) => ({ kind: "line", points, color: "var(--blue)", width: 1.6 })),
        points: lines.flat().map(([t, v]) => ({ x: t, y: v, series: "", text: `${number(t)} s\n${number(v)}` })),
      }),
    );
  });
  const rest = DATA.counts.observed - shown.length;
  return h(
    "figure",
    {},
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, `${withUnit(DATA.states[output])}, against seconds`),
      select(
        "State",
        DATA.states.map((s, i) => [i, plain(s.name)]),
        output,
        (v) => {
          state.output = Number(v);
          render();
        },
      ),
    ),
    h("div", { class: "many" }, panels.slice(0, FEW)),
    panels.length > FEW
      ? h(
          "details",
          { class: "numbers" },
          h("summary", {}, `Older tasks (${panels.length - FEW})`),
          h("div", { class: "many" }, panels.slice(FEW)),
        )
      : null,
    h(
      "p",
      { class: "caption" },
      "Newest first; all panels have the same vertical axis. A gap is where samples were missing or another trajectory begins. ",
      rest > 0 ? `The recordings of ${rest} older tasks are left out.` : "",
    ),
  );
}

function tasksSection() {
  const learnt = DATA.learning,
    head = ["task", "descriptor", "", "transitions", ...(learnt ? ["error left out", "coverage"] : []), "notes"];
  return h(
    "figure",
    { "data-figure": "tasks" },
    table(
      head,
      DATA.tasks.map((task) => [
        String(task.id),
        task.words,
        task.state === "observed" ? task.origin : task.state,
        task.transitions ? String(task.transitions) : "–",
        ...(learnt
          ? [number(task.error[0]), task.error[1] === null ? "–" : `${Math.round(100 * task.error[1])} %`]
          : []),
        h("span", { class: "notes" }, task.notes.join(" ")),
      ]),
      { "aria-label": "Tasks" },
    ),
  );
}

function render(focus) {
  redraw(() => {
    const shown = SECTIONS.filter(([, , , , when]) => !when || when());
    return { children: [hero(), ...shown.map(section)], links: shown.map(([id, , short]) => [id, short]) };
  }, focus);
}
render();
