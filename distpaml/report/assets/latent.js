// The latent space of a run, round by round, over the utility of the next choice.
function surface(shade, valid, low, high) {
  const values = unpack(shade),
    mask = valid ? unpack(valid) : null,
    n = Math.round(Math.sqrt(values.length));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = n;
  const context = canvas.getContext("2d"),
    image = context.createImageData(n, n);
  const style = getComputedStyle(document.documentElement);
  const [from, to] = ["--surface-low", "--surface-high"].map((name) =>
    style.getPropertyValue(name).trim().split(/\s+/).map(Number),
  );
  const span = shade.high - shade.low || 1;
  for (let r = 0; r < n; r++)
    for (let c = 0; c < n; c++) {
      const t = (values[(n - 1 - r) * n + c] - shade.low) / span,
        k = 4 * (r * n + c);
      for (let i = 0; i < 3; i++) image.data[k + i] = from[i] + t * (to[i] - from[i]);
      image.data[k + 3] = mask && mask[(n - 1 - r) * n + c] < 0.5 ? 96 : 255;
    }
  context.putImageData(image, 0, 0);
  return {
    kind: "image",
    href: canvas.toDataURL(),
    x0: low[0],
    y0: low[1],
    x1: high[0],
    y1: high[1],
    class: "surface",
  };
}

function shadingWords(utility, { low, high, valid }) {
  const faded = valid ? ", faded where the decoded descriptor is invalid" : "";
  return `The shading ranks the ${plain(utility)} of a task there, from ${number(low)} to ${number(high)} (strongest)${faded}`;
}

// The latent space after one round, and its caption.
function latentChart(at) {
  const entry = experiment(),
    run = currentRun(),
    { latent } = DATA.details[run.id];
  const rounds = latent.mean.length - 1,
    oracle = !run.tasks.length,
    flat = latent.of === 1;
  const dimension = Math.min(state.colour, entry.parameters.length - 1),
    parameter = entry.parameters[dimension];
  const colour = (value) =>
    value === null ? "var(--muted)" : ramp((value - parameter.low) / (parameter.high - parameter.low));
  const words = (task) => task.map((v, k) => `${plain(entry.parameters[k].name)} ${number(v)}`).join("\n");
  const low = flat ? [latent.low[0], parameter.low] : latent.low,
    high = flat ? [latent.high[0], parameter.high] : latent.high;
  const place = (row, value) => (flat ? [row[0], value ?? low[1]] : row);
  const marks = [],
    points = [],
    labels = [],
    field = latent.surfaces[at];
  if (field) marks.push(surface(field.shade, field.valid, low, high));
  if (at === rounds)
    latent.test.forEach((row, i) => {
      const task = latent.test_tasks[i],
        value = task && dimension < task.length ? task[dimension] : null,
        [a, b] = place(row, value);
      marks.push({
        kind: "marks",
        points: [[a, b]],
        mark: "square",
        size: 2.6,
        color: colour(value),
        stroke: "var(--surface)",
        line: 0.5,
        opacity: 0.85,
      });
      if (task) points.push({ x: a, y: b, series: "test tasks", text: `test task\n${words(task)}` });
    });
  latent.mean[at].forEach((row, i) => {
    const task = run.tasks[i],
      value = oracle ? null : task[1 + dimension],
      [a, b] = place(row, value),
      spread = latent.spread[at][i];
    if (!flat) marks.push({ kind: "ellipse", x: a, y: b, rx: 2 * spread[0], ry: 2 * spread[1], color: colour(value) });
    marks.push({
      kind: "marks",
      points: [[a, b]],
      mark: task && task[0] === 0 ? "diamond" : "circle",
      size: oracle ? 2 : 5,
      color: colour(value),
      stroke: "var(--ink)",
      line: 1.1,
    });
    if (oracle) return;
    labels.push({ kind: "text", x: a, y: b, dx: 8, dy: -6, text: task[0] ? String(task[0]) : "0", class: "order" });
    const origin = task[0] ? `chosen in round ${task[0]}` : "initial task";
    const where = row.map((v, k) => `${number(v)} ± ${number(2 * spread[k], 2)}`).join(", ");
    points.push({ x: a, y: b, series: "tasks", text: `${origin}\n${words(task.slice(1))}\nh = ${where}` });
  });
  const next = flat ? [] : (latent.chosen[at + 1] || []).filter(Boolean),
    outside = next.filter((row) => row.some((v, k) => v < low[k] || v > high[k])).length;
  for (const row of next)
    marks.push({ kind: "marks", points: [row], mark: "cross", size: 7, color: "var(--accent)", line: 3.4 });
  const names = latent.dimensions.map((d) => `h${"₁₂₃₄₅₆₇₈₉"[d] || d + 1}`);
  const figure = plot({
    square: true,
    height: 420,
    label:
      `Latent space after round ${at}: q(h) of ${latent.mean[at].length} tasks, ` +
      "ellipses of two standard deviations, numbered by the round that chose them",
    x: { label: names[0], domain: [low[0], high[0]] },
    y: { label: flat ? withUnit(parameter) : names[1], domain: [low[1], high[1]] },
    marks: [...marks, ...labels],
    points,
  });
  const caption = h(
    "p",
    { class: "caption" },
    "Ellipses are two standard deviations of q(h); diamonds (0) are initial tasks, circles chosen ones with their round",
    at === rounds ? "; small squares are the test tasks" : "",
    field ? `. ${shadingWords(latent.utility, field)}` : "",
    next.length ? `. The cross marks the next task${outside ? ", here outside the figure" : ""}` : "",
    ". Latents may lie far from the prior N(0, I): it weighs half of h² per task, little against hundreds of observed",
    " numbers, and only distances in units of the kernel's length-scales matter",
    latent.of > 2 ? `. These are the two of ${latent.of} dimensions in which tasks differ most` : "",
    ".",
  );
  return [figure, rampKey(parameter.low, parameter.high, withUnit(parameter)), caption];
}

function latentFigure() {
  const entry = experiment(),
    rounds = DATA.details[currentRun().id].latent.mean.length - 1,
    at = Math.min(state.round ?? rounds, rounds);
  const body = h("div", {}),
    output = h("output", {}, `${at} of ${rounds}`);
  const slider = h("input", {
    type: "range",
    id: "latent-round",
    min: 0,
    max: rounds,
    oninput: () => show(Number(slider.value)),
  });
  slider.value = at;
  const show = (to) => {
    state.round = to === rounds ? null : to;
    output.textContent = `${to} of ${rounds}`;
    replace(body, ...latentChart(to));
  };
  let timer = null;
  const play = h(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        clearInterval(timer);
        slider.value = 0;
        show(0);
        timer = setInterval(() => {
          if (!body.isConnected || Number(slider.value) >= rounds) return clearInterval(timer);
          slider.value = Number(slider.value) + 1;
          show(Number(slider.value));
        }, 900);
      },
    },
    "▶ Play",
  );
  show(at);
  return h(
    "figure",
    { "data-figure": "latent" },
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, "Latent space"),
      select(
        "Colour",
        entry.parameters.map((p, i) => [i, plain(p.name)]),
        state.colour,
        (value) => {
          state.colour = Number(value);
          render();
        },
      ),
    ),
    rounds
      ? h(
          "div",
          { class: "row" },
          h("label", { class: "slide" }, h("span", { class: "name" }, "After round"), slider, output),
          play,
        )
      : null,
    body,
  );
}
