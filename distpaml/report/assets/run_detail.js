// A run in detail: latent space, chosen tasks, predictions, films.
function detailedRuns(entry) { return entry.runs.filter((run) => DATA.details[run.id]); }

function currentRun() {
  const entry = experiment(), runs = detailedRuns(entry);
  return runs.find((run) => run.path === state.run) || runs[0];
}

function runPicker() {
  const entry = experiment(), runs = detailedRuns(entry), run = currentRun(), rest = entry.runs.length - runs.length;
  return h("div", { class: "row" },
    select("Run", runs.map((r) => [r.path, `${entry.groups[r.group].label}, seed ${r.seed}${r.complete ? "" : ` (${r.rounds} rounds so far)`}`]), run.path, (path) => { state.run = path; state.round = null; render(); }),
    rest > 0 ? h("span", { class: "muted" }, `${rest} more by `, h("code", {}, "python -m distpaml.report DIR/trials/NAME")) : null);
}

function surface(shade, valid, low, high) {
  const values = unpack(shade), mask = valid ? unpack(valid) : null, n = Math.round(Math.sqrt(values.length));
  const canvas = document.createElement("canvas"); canvas.width = canvas.height = n;
  const context = canvas.getContext("2d"), image = context.createImageData(n, n);
  const style = getComputedStyle(document.documentElement);
  const [from, to] = ["--surface-low", "--surface-high"].map((name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number));
  const span = shade.high - shade.low || 1;
  for (let r = 0; r < n; r++) for (let c = 0; c < n; c++) {
    const t = (values[(n - 1 - r) * n + c] - shade.low) / span, k = 4 * (r * n + c);
    for (let i = 0; i < 3; i++) image.data[k + i] = from[i] + t * (to[i] - from[i]);
    image.data[k + 3] = mask && mask[(n - 1 - r) * n + c] < 0.5 ? 96 : 255;
  }
  context.putImageData(image, 0, 0);
  return { kind: "image", href: canvas.toDataURL(), x0: low[0], y0: low[1], x1: high[0], y1: high[1], class: "surface" };
}

function latentFigure(at) {
  const entry = experiment(), run = currentRun(), { latent } = DATA.details[run.id];
  const rounds = latent.mean.length - 1, oracle = !run.tasks.length, flat = latent.of === 1;
  const dimension = Math.min(state.colour, entry.parameters.length - 1), parameter = entry.parameters[dimension];
  const colour = (value) => (value === null ? "var(--muted)" : ramp((value - parameter.low) / (parameter.high - parameter.low)));
  const words = (task) => task.map((v, k) => `${plain(entry.parameters[k].name)} ${number(v)}`).join("\n");
  const low = flat ? [latent.low[0], parameter.low] : latent.low, high = flat ? [latent.high[0], parameter.high] : latent.high;
  const place = (row, value) => (flat ? [row[0], value ?? low[1]] : row);
  const marks = [], points = [], labels = [], field = latent.surfaces[at];
  if (field) marks.push(surface(field.shade, field.valid, low, high));
  if (at === rounds) latent.test.forEach((row, i) => {
    const task = latent.test_tasks[i], value = task && dimension < task.length ? task[dimension] : null, [a, b] = place(row, value);
    marks.push({ kind: "marks", points: [[a, b]], mark: "square", size: 2.6, color: colour(value), stroke: "var(--surface)", line: 0.5, opacity: 0.85 });
    if (task) points.push({ x: a, y: b, series: "test tasks", text: `test task\n${words(task)}` });
  });
  latent.mean[at].forEach((row, i) => {
    const task = run.tasks[i], value = oracle ? null : task[1 + dimension], [a, b] = place(row, value), spread = latent.spread[at][i];
    if (!flat) marks.push({ kind: "ellipse", x: a, y: b, rx: 2 * spread[0], ry: 2 * spread[1], color: colour(value) });
    marks.push({ kind: "marks", points: [[a, b]], mark: task && task[0] === 0 ? "diamond" : "circle", size: oracle ? 2 : 5, color: colour(value), stroke: "var(--ink)", line: 1.1 });
    if (oracle) return;
    labels.push({ kind: "text", x: a, y: b, dx: 8, dy: -6, text: task[0] ? String(task[0]) : "0", class: "order" });
    points.push({ x: a, y: b, series: "tasks", text: `${task[0] ? `chosen in round ${task[0]}` : "initial task"}\n${words(task.slice(1))}\nh = ${row.map((v, k) => `${number(v)} ± ${number(2 * spread[k], 2)}`).join(", ")}` });
  });
  const next = flat ? [] : (latent.chosen[at + 1] || []).filter(Boolean), outside = next.filter((row) => row.some((v, k) => v < low[k] || v > high[k])).length;
  for (const row of next) marks.push({ kind: "marks", points: [row], mark: "cross", size: 7, color: "var(--accent)", line: 3.4 });
  const names = latent.dimensions.map((d) => `h${"₁₂₃₄₅₆₇₈₉"[d] || d + 1}`);
  const figure = plot({ square: true, height: 420, label: `Latent space after round ${at}: q(h) of ${latent.mean[at].length} tasks, ellipses of two standard deviations, numbered by the round of their choice`,
    x: { label: names[0], domain: [low[0], high[0]] }, y: { label: flat ? plain(parameter.name) : names[1], domain: [low[1], high[1]] }, marks: [...marks, ...labels], points });
  const caption = h("p", { class: "caption" }, "Ellipses are two standard deviations of q(h); diamonds (0) are initial tasks, circles chosen ones with their round",
    at === rounds ? "; small squares are the test tasks" : "",
    field ? `. The shading is the ${plain(latent.utility)} of a task there by rank, from ${number(field.low)} to ${number(field.high)} (strongest)${field.valid ? ", faded where the decoded descriptor is not valid" : ""}` : "",
    next.length ? `. The cross is where the next task was chosen${outside ? ", here outside of the figure" : ""}` : "",
    latent.of > 2 ? `. These are the two of ${latent.of} dimensions in which tasks differ most` : "", ".");
  return [figure, rampKey(parameter.low, parameter.high, plain(parameter.name)), caption];
}

function latentFigure() {
  const entry = experiment(), rounds = DATA.details[currentRun().id].latent.mean.length - 1, at = Math.min(state.round ?? rounds, rounds);
  const body = h("div", {}), output = h("output", {}, `${at} of ${rounds}`);
  const slider = h("input", { type: "range", id: "latent-round", min: 0, max: rounds, oninput: () => show(Number(slider.value)) });
  slider.value = at;
  const show = (to) => { state.round = to === rounds ? null : to; output.textContent = `${to} of ${rounds}`; replace(body, ...latentFigure(to)); };
  let timer = null;
  const play = h("button", { type: "button", class: "quiet", onclick: () => {
    clearInterval(timer);
    slider.value = 0; show(0);
    timer = setInterval(() => { if (!body.isConnected || Number(slider.value) >= rounds) return clearInterval(timer); slider.value = Number(slider.value) + 1; show(Number(slider.value)); }, 900);
  } }, "▶ Play");
  show(at);
  return h("figure", { "data-figure": "latent" },
    h("div", { class: "figure-head" }, h("h3", {}, "Latent space"),
      select("Colour", entry.parameters.map((p, i) => [i, plain(p.name)]), state.colour, (value) => { state.colour = Number(value); render(); })),
    rounds ? h("div", { class: "row" }, h("label", { class: "slide" }, h("span", { class: "name" }, "After round"), slider, output), play) : null, body);
}

function chosenFigure() {
  const entry = experiment(), count = entry.parameters.length, run = currentRun();
  let [ix, iy] = state.axes.map((a) => Math.min(a, count - 1));
  const X = entry.parameters[ix], Y = count > 1 ? entry.parameters[iy === ix ? (ix + 1) % count : iy] : null;
  if (Y) iy = entry.parameters.indexOf(Y);
  const pad = (p) => { const m = 0.05 * (p.high - p.low); return [p.low - m, p.high + m]; };
  const panels = shownGroups(entry).filter(([g]) => g.method !== "oracle").slice(0, 6).map(([group, i]) => {
    const style = styleOf(entry.groups, i), runs = entry.runs.filter((r) => r.group === i), front = runs.find((r) => r.seed === (run ? run.seed : 0)) || runs[0];
    const marks = [], points = [], at = (task) => [task[1 + ix], Y ? task[1 + iy] : front.tasks.indexOf(task)];
    const depth = Math.max(1, ...runs.map((r) => r.tasks.length));
    for (const other of runs) if (other !== front) marks.push({ kind: "marks", points: other.tasks.filter((t) => t[0]).map((t, k) => (Y ? at(t) : [t[1 + ix], k])), color: style.color, mark: style.mark, size: 2.6, opacity: 0.28 });
    if (Y) marks.push({ kind: "line", points: front.tasks.filter((t) => t[0]).map(at), color: style.color, width: 0.8, opacity: 0.5 });
    for (const task of front.tasks) {
      const [a, b] = at(task);
      marks.push({ kind: "marks", points: [[a, b]], mark: task[0] ? style.mark : "diamond", size: task[0] ? 4.6 : 4, color: style.color, hollow: !task[0], line: 1.6 });
      if (task[0]) marks.push({ kind: "text", x: a, y: b, dx: 6, dy: -5, text: String(task[0]), class: "order" });
      points.push({ x: a, y: b, series: "tasks", text: `${group.label}, ${task[0] ? `round ${task[0]}` : "initial"}\n${entry.parameters.map((p, k) => `${plain(p.name)} ${number(task[1 + k])}${entry.hidden.includes(p.name) ? " (hidden)" : ""}`).join("\n")}` });
    }
    return h("div", { class: "panel", "data-figure": `chosen-${i}` }, plot({ height: 250, title: `${group.label}, seed ${front.seed}`, label: `Tasks that ${group.label} chose with seed ${front.seed}, in ${plain(X.name)}${Y ? ` and ${plain(Y.name)}` : ""}`,
      x: { label: plain(X.name), domain: pad(X) }, y: { label: Y ? plain(Y.name) : "order", domain: Y ? pad(Y) : [-1, depth] }, marks, points }));
  });
  const axes = entry.parameters.map((p, i) => [i, plain(p.name)]);
  return h("div", {}, h("div", { class: "figure-head" }, h("h3", {}, "Chosen tasks"),
    count > 2 ? h("div", { class: "row" }, select("Across", axes, ix, (v) => { state.axes[0] = Number(v); render(); }), select("Up", axes, iy, (v) => { state.axes[1] = Number(v); render(); })) : null),
    h("p", { class: "caption" }, "Hollow diamonds are the initial tasks, numbers the rounds of the choices; faint marks are choices of the other seeds."), h("div", { class: "many" }, panels));
}

function predictionFigure() {
  const p = DATA.details[currentRun().id].predictions;
  if (!p) return null;
  const [tasks, steps, outputs] = p.shape, output = Math.min(state.output, outputs - 1);
  const [truth, mean, deviation] = [unpack(p.true), unpack(p.mean), unpack(p.deviation)];
  const panels = p.tasks.map((name, n) => {
    const at = (values, t) => values[(n * steps + t) * outputs + output], time = [...Array(steps).keys()];
    const rows = time.map((t) => [t * p.dt, at(truth, t), at(mean, t), at(deviation, t)]);
    const ys = rows.flatMap(([, y, m, d]) => [y, m]), domain = extent(ys, "linear", 0.15);
    const marks = [
      { kind: "band", points: rows.map(([t, , m, d]) => [t, m - 2 * d, m + 2 * d]), color: "var(--c1)", strength: 0.25 },
      { kind: "line", points: rows.map(([t, , m]) => [t, m]), color: "var(--c1)", width: 2, dash: "5 3" },
      { kind: "marks", points: rows.map(([t, y]) => [t, y]), color: "var(--ink)", size: 1.5, line: 0.4 }];
    const points = rows.map(([t, y, m, d]) => ({ x: t, y, series: "true", text: `${number(t)} s\ntrue ${number(y)}\npredicted ${number(m)} ± ${number(2 * d, 2)}` }));
    return h("div", { class: "panel", "data-figure": `prediction-${n}` }, plot({ height: 170, bare: true, title: plain(name.replaceAll("pole_", "")), label: `Change of ${plain(p.states[output])} for the test task ${plain(name)}: true against predicted ± 2 standard deviations, RMSE ${number(p.rmse[n])}`,
      x: { domain: [0, steps * p.dt] }, y: { domain }, marks, points }));
  });
  return h("figure", {}, h("div", { class: "figure-head" }, h("h3", {}, "Predictions for test tasks"),
    select("Change of", p.states.map((name, i) => [i, plain(name)]), output, (v) => { state.output = Number(v); render(); })),
    h("p", { class: "caption" }, "One step ahead, over the seconds of a trajectory: dots are true, the dashed line is the prediction, the band ± 2 standard deviations. Test tasks are spread evenly over the grid."),
    h("div", { class: "many four" }, panels));
}

function film(entry, index) {
  const size = 104, reach = entry.reach * 1.12 + (entry.cart ? 0.2 : 0), unit = size / (2 * reach);
  const at = ([a, b]) => `${(size / 2 + a * unit).toFixed(1)},${(size / 2 - b * unit).toFixed(1)}`;
  const chain = (joints) => `M${joints.map(at).join("L")}`;
  const frames = entry.times.map((time, k) => {
    const cart = (joints, kind) => entry.cart ? s("rect", { x: size / 2 + joints[0][0] * unit - 8, y: size / 2 - 4, width: 16, height: 8, rx: 2, class: kind }) : null;
    return h("div", { class: "frame" }, s("svg", { viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" },
      entry.cart ? s("path", { d: `M0,${size / 2 + 5}h${size}`, class: "rail" }) : s("circle", { cx: size / 2, cy: size / 2, r: 2.6, class: "true-tip" }),
      entry.samples[k].map((joints) => [cart(joints, "guess-cart"), s("path", { d: chain(joints), class: "guess" })]),
      cart(entry.true[k], "true-cart"), s("path", { d: chain(entry.true[k]), class: "true" }),
      entry.true[k].slice(1).map((joint) => s("circle", { cx: at(joint).split(",")[0], cy: at(joint).split(",")[1], r: 2.6, class: "true-tip" }))),
      h("span", {}, `${number(time, 3)} s`));
  });
  return h("figure", { class: "film", "data-figure": `film-${index}`, role: "img", "aria-label": `Film of the test task ${plain(entry.task)}: the true motion and sampled predictions from the start` },
    h("h4", {}, plain(entry.task)), h("div", { class: "frames", tabindex: "0", role: "region", "aria-label": `Frames of ${plain(entry.task)}` }, frames));
}

function filmFigure() {
  const { films } = DATA.details[currentRun().id];
  if (!films) return null;
  return h("div", {}, h("h3", {}, "Films"), h("p", { class: "caption" }, "Many steps ahead, from the start state alone under the control signal: the dark system is the true one, the ", h("span", { class: "guess-word" }, "light ones"), " are sampled from the model. Frames move along with the true cart."), films.map(film));
}

function detailSection() {
  const run = currentRun();
  if (!run) return [h("p", { class: "lead" }, "There is no run of this experiment that could be read.")];
  const detail = DATA.details[run.id];
  return [runPicker(), detail.lacking ? h("p", { class: "note" }, `Predictions and films of this run cannot be made here. ${detail.lacking}`) : null,
    h("div", { class: "two uneven" }, latentFigure(), chosenFigure()), predictionFigure(), filmFigure(),
    (detail.image_figures || []).map((figure) => h("figure", { "data-figure": "image" }, h("h3", {}, figure.title), h("img", { src: figure.image, alt: figure.title })))];
}
