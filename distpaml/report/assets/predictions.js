// What a run's model predicts for test tasks: one step ahead, and rollouts from the start.
function predictionFigure() {
  const p = DATA.details[currentRun().id].predictions;
  if (!p) return null;
  const [tasks, steps, outputs] = p.shape,
    output = Math.min(state.output, outputs - 1);
  const [truth, mean, deviation] = [unpack(p.true), unpack(p.mean), unpack(p.deviation)];
  const panels = p.tasks.map((name, n) => {
    const at = (values, t) => values[(n * steps + t) * outputs + output],
      time = [...Array(steps).keys()];
    const rows = time.map((t) => [t * p.dt, at(truth, t), at(mean, t), at(deviation, t)]);
    const ys = rows.flatMap(([, y, m, d]) => [y, m]),
      domain = extent(ys, "linear", 0.15);
    const marks = [
      {
        kind: "band",
        points: rows.map(([t, , m, d]) => [t, m - 2 * d, m + 2 * d]),
        color: "var(--blue)",
        strength: 0.25,
      },
      { kind: "line", points: rows.map(([t, , m]) => [t, m]), color: "var(--blue)", width: 2, dash: "5 3" },
      { kind: "marks", points: rows.map(([t, y]) => [t, y]), color: "var(--ink)", size: 1.5, line: 0.4 },
    ];
    const points = rows.map(([t, y, m, d]) => ({
      x: t,
      y,
      series: "true",
      text: `${number(t)} s\ntrue ${number(y)}\npredicted ${number(m)} ± ${number(2 * d, 2)}`,
    }));
    return h(
      "div",
      { class: "panel", "data-figure": `prediction-${n}` },
      h("h4", {}, plain(name.replaceAll("pole_", ""))),
      plot({
        height: 160,
        bare: true,
        label:
          `Change of ${plain(p.states[output])} for the test task ${plain(name)}: ` +
          `true against predicted ± 2 standard deviations, RMSE ${number(p.rmse[n])}`,
        x: { domain: [0, steps * p.dt] },
        y: { domain },
        marks,
        points,
      }),
    );
  });
  return h(
    "figure",
    {},
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, "Predictions for test tasks"),
      select(
        "Change of",
        p.states.map((name, i) => [i, plain(name)]),
        output,
        (v) => {
          state.output = Number(v);
          render();
        },
      ),
    ),
    h(
      "p",
      { class: "caption" },
      "One step ahead, over the seconds of a trajectory: dots are true, the dashed line is the prediction, " +
        "the band is ± 2 standard deviations. Test tasks are spread evenly over the grid.",
    ),
    h("div", { class: "many four" }, panels),
  );
}

function rolloutStrip(entry, index) {
  const size = 104,
    reach = entry.reach * 1.12 + (entry.cart ? 0.2 : 0),
    unit = size / (2 * reach);
  const at = ([a, b]) => `${(size / 2 + a * unit).toFixed(1)},${(size / 2 - b * unit).toFixed(1)}`;
  const chain = (joints) => `M${joints.map(at).join("L")}`;
  const frames = entry.times.map((time, k) => {
    const cart = (joints, kind) =>
      entry.cart
        ? s("rect", {
            x: size / 2 + joints[0][0] * unit - 8,
            y: size / 2 - 4,
            width: 16,
            height: 8,
            rx: 2,
            class: kind,
          })
        : null;
    return h(
      "div",
      { class: "frame" },
      s(
        "svg",
        { viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" },
        entry.cart
          ? s("path", { d: `M0,${size / 2 + 5}h${size}`, class: "rail" })
          : s("circle", { cx: size / 2, cy: size / 2, r: 2.6, class: "true-tip" }),
        entry.samples[k].map((joints) => [cart(joints, "guess-cart"), s("path", { d: chain(joints), class: "guess" })]),
        cart(entry.true[k], "true-cart"),
        s("path", { d: chain(entry.true[k]), class: "true" }),
        entry.true[k]
          .slice(1)
          .map((joint) =>
            s("circle", { cx: at(joint).split(",")[0], cy: at(joint).split(",")[1], r: 2.6, class: "true-tip" }),
          ),
      ),
      h("span", {}, `${number(time, 3)} s`),
    );
  });
  return h(
    "figure",
    {
      class: "rollout",
      "data-figure": `rollout-${index}`,
      role: "img",
      "aria-label": `Rollout of the test task ${plain(entry.task)}: the true motion and sampled predictions from the start`,
    },
    h("h4", {}, plain(entry.task)),
    h(
      "div",
      { class: "frames", tabindex: "0", role: "region", "aria-label": `Frames of ${plain(entry.task)}` },
      frames,
    ),
  );
}

function rolloutFigure() {
  const { rollouts } = DATA.details[currentRun().id];
  if (!rollouts) return null;
  return h(
    "div",
    {},
    h("h3", {}, "Rollouts"),
    h(
      "p",
      { class: "caption" },
      "Many steps ahead, from the start state alone under the control signal: the dark system is the true one, the ",
      h("span", { class: "guess-word" }, "light ones"),
      " are sampled from the model. Frames move along with the base of the true one.",
    ),
    rollouts.map(rolloutStrip),
  );
}
