// A search: parallel coordinates, importance, the best configuration.
function axisOf(values, wanted) {
  const numeric = values.every((v) => typeof v === "number");
  if (!numeric) {
    const kinds = [...new Set(values.map(String))].sort();
    return { at: (v) => (kinds.indexOf(String(v)) + 0.5) / kinds.length, ticks: kinds };
  }
  const low = Math.min(...values),
    high = Math.max(...values),
    log = wanted && low > 0;
  const to = (v) => (low === high ? 0.5 : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  return { at: to, ticks: [...new Set([low, log ? Math.sqrt(low * high) : (low + high) / 2, high])] };
}

const shownValue = (value) => (typeof value === "number" ? number(value) : value);

function sampleWords(search, one) {
  const title = `${one.name}${one.name === search.best ? " (best)" : ""}`;
  const values = search.space.map((key, k) => `${key} ${shownValue(one.values[k])}`);
  return [title, `${search.objective} ${number(one.objective, 4)}, ${one.seeds} seeds`, ...values].join("\n");
}

function parallel(search) {
  const keys = [...search.space, search.objective],
    columns = keys.map((_, k) =>
      search.samples.map((one) => (k < search.space.length ? one.values[k] : one.objective)),
    );
  const axes = columns.map((values, k) => axisOf(values, search.log[k])),
    sign = search.mode === "max" ? -1 : 1;
  const order = [...search.samples].sort((a, b) => sign * (a.objective - b.objective));
  const shown = () => Math.min(state.best || order.length, order.length),
    output = h("output", {}, `${shown()} of ${order.length}`);
  const draw = (width) => {
    const height = 330,
      left = 46,
      right = 60,
      top = 46,
      H = height - top - 22,
      gap = (width - left - right) / Math.max(1, keys.length - 1);
    const x = (k) => left + k * gap,
      y = (k, v) => top + H - axes[k].at(v) * H;
    const svg = s("svg", {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      tabindex: "0",
      class: "chart",
      "aria-label": `Parallel coordinates of ${order.length} samples; the best is ${search.best}`,
    });
    const points = [];
    order
      .slice(0, shown())
      .reverse()
      .forEach((one) => {
        const rank = order.indexOf(one),
          best = one.name === search.best,
          values = [...one.values, one.objective];
        svg.append(
          s("path", {
            d: `M${values.map((v, k) => `${x(k).toFixed(1)},${y(k, v).toFixed(1)}`).join("L")}`,
            fill: "none",
            stroke: best ? "var(--accent)" : ramp(1 - rank / Math.max(1, order.length - 1)),
            "stroke-width": best ? 3.4 : 1.4,
            opacity: best ? 1 : 0.6,
            "stroke-dasharray": one.complete ? "" : "3 3",
          }),
        );
        const text = sampleWords(search, one);
        values.forEach((v, k) => points.push({ x: k, y: 0, px: x(k), py: y(k, v), series: one.name, text }));
      });
    keys.forEach((key, k) =>
      svg.append(
        s("path", { d: `M${x(k)},${top}v${H}`, class: "axis-line" }),
        s(
          "text",
          {
            x: x(k),
            y: k % 2 ? 30 : 14,
            "text-anchor": k === 0 ? "start" : k === keys.length - 1 ? "end" : "middle",
            class: "axis",
          },
          k < search.space.length ? key : `${key} (${search.mode})`,
        ),
        ...axes[k].ticks.map((v) => s("text", { x: x(k) + 5, y: y(k, v) + 4, class: "tick" }, shownValue(v))),
      ),
    );
    listen(svg, points);
    return svg;
  };
  const host = h("div", { class: "plot", style: { minHeight: "330px" } });
  const entry = {
    width: 0,
    draw() {
      entry.width = host.clientWidth;
      if (entry.width) host.replaceChildren(draw(Math.max(entry.width, 90 * keys.length)));
    },
  };
  drawn.set(host, entry);
  watcher.observe(host);
  viewer.observe(host);
  return h(
    "figure",
    { "data-figure": "parallel" },
    h(
      "div",
      { class: "figure-head" },
      h("h3", {}, "Samples"),
      h(
        "label",
        { class: "slide" },
        h("span", { class: "name" }, "Best"),
        h("input", {
          type: "range",
          min: 1,
          max: order.length,
          value: shown(),
          "aria-label": "How many of the best samples",
          oninput: (event) => {
            state.best = Number(event.target.value);
            output.textContent = `${state.best} of ${order.length}`;
            entry.draw();
          },
        }),
        output,
      ),
    ),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parallel coordinates" }, host),
    numbers(() =>
      table(
        ["sample", search.objective, ...search.space, "seeds"],
        order.map((one) => [
          one.name,
          h("span", { "data-value": one.objective }, number(one.objective, 4)),
          ...one.values.map((v) => (typeof v === "number" ? number(v) : v)),
          String(one.seeds),
        ]),
        { "data-table": "samples" },
      ),
    ),
  );
}

function bars(rows, label) {
  const most = Math.max(...rows.map(([, v]) => v), 1e-12);
  return h(
    "div",
    { class: "bars", role: "img", "aria-label": label },
    rows.map(([name, value]) =>
      h(
        "div",
        { class: "bar-row" },
        h("span", {}, name),
        h("div", { class: "track" }, h("i", { style: { width: `${(100 * value) / most}%` } })),
        h("b", {}, number(value)),
      ),
    ),
  );
}

function copyable(text) {
  const button = h(
    "button",
    {
      type: "button",
      class: "copy",
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          const area = h("textarea", { value: text });
          document.body.append(area);
          area.select();
          document.execCommand("copy");
          area.remove();
        }
        button.textContent = "Copied";
        setTimeout(() => {
          button.textContent = "Copy";
        }, 1500);
        say("Copied");
      },
    },
    "Copy",
  );
  return h("div", { class: "code" }, button, h("pre", { tabindex: "0" }, text));
}

function searchSection() {
  return DATA.searches.map((search) => {
    const best = search.samples.find((one) => one.name === search.best);
    return h(
      "article",
      {},
      h(
        "p",
        { class: "lead" },
        `${search.name}: ${search.samples.length} samples; ${search.best} has the ` +
          `${search.mode === "max" ? "highest" : "lowest"} ${search.objective}, ${number(best.objective, 4)}, ` +
          `the mean over ${best.seeds} seeds in the last round.`,
      ),
      parallel(search),
      h(
        "div",
        { class: "two" },
        h(
          "figure",
          { "data-figure": "importance" },
          h("h3", {}, "Importance of the keys"),
          h("p", { class: "caption" }, search.importance_is),
          search.importance.length
            ? bars(
                search.importance,
                `Importance: ${search.importance.map(([k, v]) => `${k} ${number(v)}`).join(", ")}`,
              )
            : null,
        ),
        h(
          "figure",
          { "data-figure": "best" },
          h("h3", {}, "Best configuration"),
          h(
            "p",
            { class: "caption" },
            "Every key; save it and run it with ",
            h("code", {}, "python -m distpaml.run --config FILE"),
            ".",
          ),
          copyable(search.yaml),
        ),
      ),
    );
  });
}
