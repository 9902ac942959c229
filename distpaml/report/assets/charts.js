// Small SVG charts that draw themselves when they come near the screen: lines, bands, points, ellipses, images.
const MARKS = {
  circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  square: (r) => {
    const a = r * 0.9;
    return `M${-a},${-a}h${2 * a}v${2 * a}h${-2 * a}z`;
  },
  triangle: (r) => `M0,${-1.15 * r}L${1.1 * r},${0.85 * r}H${-1.1 * r}z`,
  diamond: (r) => `M0,${-1.25 * r}L${1.25 * r},0L0,${1.25 * r}L${-1.25 * r},0z`,
  cross: (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`,
};
// Colour, dashes and marker of a group, which distpaml/report/styles.py has chosen.
function styleOf(groups, index) {
  const { colour, dashes, marker } = groups[index].style;
  return { color: `var(--${colour})`, dash: dashes, mark: marker };
}

function swatch(style, width = 34) {
  return s(
    "svg",
    { class: "swatch", viewBox: `0 0 ${width} 14`, width, height: 14, "aria-hidden": "true" },
    s("path", {
      d: `M1,7H${width - 1}`,
      stroke: style.color,
      "stroke-width": 2.2,
      "stroke-dasharray": style.dash,
      fill: "none",
    }),
    s("path", {
      d: MARKS[style.mark](3.6),
      transform: `translate(${width / 2},7)`,
      fill: style.color,
      stroke: style.color,
    }),
  );
}

const drawn = new Map();
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const entry = drawn.get(target);
    if (entry && Math.abs(entry.width - target.clientWidth) > 1) entry.draw();
  }
});
const viewer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const entry = drawn.get(target);
      if (isIntersecting && entry && !entry.width) entry.draw();
    }
  },
  { rootMargin: "600px" },
);

function forget() {
  for (const host of drawn.keys()) {
    watcher.unobserve(host);
    viewer.unobserve(host);
  }
  drawn.clear();
}

// A figure that draws itself when it comes near the screen, and again when its width changes.
function plot(options) {
  const host = h("div", { class: "plot", style: { minHeight: `${options.height || 280}px` } });
  const entry = {
    width: 0,
    draw() {
      entry.width = host.clientWidth;
      if (entry.width) {
        host.replaceChildren(chart(options, entry.width));
        host.style.minHeight = "0";
      }
    },
  };
  drawn.set(host, entry);
  watcher.observe(host);
  viewer.observe(host);
  return host;
}
function drawAll() {
  for (const entry of drawn.values()) if (!entry.width) entry.draw();
}

// Replace the figures in a place that is already on the page.
function replace(place, ...figures) {
  for (const host of place.querySelectorAll(".plot")) {
    watcher.unobserve(host);
    viewer.unobserve(host);
    drawn.delete(host);
  }
  place.replaceChildren(...figures.filter(Boolean));
}

function chart(
  { height = 280, x, y, marks, label, points = [], square = false, title, bare = false, left = bare ? 36 : 50 },
  width,
) {
  const right = 12,
    top = title ? 24 : 10,
    bottom = x.label ? 42 : 24;
  if (square) height = Math.min(width, 520) - left - right + top + bottom;
  const w = Math.max(40, width - left - right),
    H = Math.max(40, height - top - bottom);
  const sx = scales[x.kind || "linear"],
    sy = scales[y.kind || "linear"];
  const [x0, x1] = x.domain.map(sx.to),
    [y0, y1] = y.domain.map(sy.to);
  const px = (v) => left + ((sx.to(v) - x0) / (x1 - x0)) * w,
    py = (v) => top + H - ((sy.to(v) - y0) / (y1 - y0)) * H;
  const clip = `clip${(chart.count = (chart.count || 0) + 1)}`;
  const xticks = x.ticks || sx.ticks(...x.domain, Math.max(2, Math.min(8, w / 60)));
  const yticks = y.ticks || sy.ticks(...y.domain, Math.max(2, Math.min(7, H / 38)));
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    tabindex: points.length ? "0" : null,
    "aria-label": label,
    class: "chart",
  });
  svg.append(s("defs", {}, s("clipPath", { id: clip }, s("rect", { x: left, y: top - 4, width: w, height: H + 8 }))));
  if (title) svg.append(s("text", { x: left, y: 15, class: "small-title" }, title));
  svg.append(
    s(
      "g",
      { class: "grid" },
      yticks.map((v) => s("path", { d: `M${left},${py(v)}h${w}`, class: v === 0 && y.kind !== "log" ? "zero" : null })),
      xticks.map((v) => s("path", { d: `M${px(v)},${top}v${H}`, class: "faint" })),
    ),
  );
  svg.append(
    s(
      "g",
      { class: "ticks" },
      yticks.map((v) =>
        s("text", { x: left - 7, y: py(v) + 4, "text-anchor": "end" }, y.format ? y.format(v) : number(v)),
      ),
      xticks.map((v) =>
        s("text", { x: px(v), y: top + H + 16, "text-anchor": "middle" }, x.format ? x.format(v) : number(v)),
      ),
    ),
  );
  if (x.label)
    svg.append(s("text", { x: left + w / 2, y: height - 6, "text-anchor": "middle", class: "axis" }, x.label));
  if (y.label && !bare)
    svg.append(
      s(
        "text",
        { x: 12, y: top + H / 2, transform: `rotate(-90 12 ${top + H / 2})`, "text-anchor": "middle", class: "axis" },
        y.label,
      ),
    );
  const body = s("g", { "clip-path": `url(#${clip})` });
  svg.append(body);
  for (const mark of marks) for (const element of drawMark(mark, px, py)) (mark.outside ? svg : body).append(element);
  if (points.length)
    listen(
      svg,
      points
        .filter((p) => p.y !== null && Number.isFinite(py(p.y)) && Number.isFinite(px(p.x)))
        .map((p) => ({ ...p, px: px(p.x), py: Math.min(Math.max(py(p.y), top), top + H) })),
    );
  return svg;
}

function path(pairs, px, py) {
  let d = "",
    pen = false;
  for (const [a, b] of pairs) {
    if (b === null || !Number.isFinite(b)) {
      pen = false;
      continue;
    }
    d += `${pen ? "L" : "M"}${px(a).toFixed(1)},${py(b).toFixed(1)}`;
    pen = true;
  }
  return d;
}

function drawMark(m, px, py) {
  const common = { class: m.class, opacity: m.opacity };
  if (m.kind === "line")
    return [
      s("path", {
        ...common,
        d: path(m.points, px, py),
        fill: "none",
        stroke: m.color,
        "stroke-width": m.width || 2.2,
        "stroke-dasharray": m.dash,
        "stroke-linejoin": "round",
      }),
    ];
  if (m.kind === "band") {
    const whole = m.points.filter((p) => p[1] !== null && p[2] !== null);
    if (!whole.length) return [];
    const up = whole.map((p) => [p[0], p[2]]),
      down = whole.map((p) => [p[0], p[1]]).reverse();
    return [
      s("path", {
        ...common,
        d: path(up, px, py) + path(down, px, py).replace("M", "L") + "Z",
        fill: m.color,
        "fill-opacity": m.strength || 0.15,
        stroke: "none",
      }),
    ];
  }
  if (m.kind === "marks")
    return m.points
      .filter((p) => p[1] !== null)
      .map((p) =>
        s("path", {
          ...common,
          d: MARKS[m.mark || "circle"](m.size || 3.6),
          transform: `translate(${px(p[0]).toFixed(1)},${py(p[1]).toFixed(1)})`,
          fill: m.hollow ? "var(--surface)" : p[2] || m.color,
          stroke: m.stroke || p[2] || m.color,
          "stroke-width": m.line || 1.4,
        }),
      );
  if (m.kind === "ellipse")
    return [
      s("ellipse", {
        ...common,
        cx: px(m.x),
        cy: py(m.y),
        rx: Math.abs(px(m.x + m.rx) - px(m.x)),
        ry: Math.abs(py(m.y + m.ry) - py(m.y)),
        fill: m.color,
        "fill-opacity": 0.22,
        stroke: m.color,
        "stroke-width": 1.3,
      }),
    ];
  if (m.kind === "text")
    return [
      s(
        "text",
        { ...common, x: px(m.x) + (m.dx || 0), y: py(m.y) + (m.dy || 0), "text-anchor": m.anchor || "start" },
        m.text,
      ),
    ];
  if (m.kind === "image")
    return [
      s("image", {
        ...common,
        href: m.href,
        x: px(m.x0),
        y: py(m.y1),
        width: px(m.x1) - px(m.x0),
        height: py(m.y0) - py(m.y1),
        preserveAspectRatio: "none",
      }),
    ];
  return [];
}

// Colour of a share in [0, 1], dark to light with rising warmth; distinguishable in both themes.
const RAMP = [
  [92, 78, 190],
  [52, 104, 190],
  [30, 140, 150],
  [70, 180, 110],
  [190, 205, 60],
  [253, 220, 60],
];
function ramp(t) {
  const at = Math.max(0, Math.min(0.9999, t)) * (RAMP.length - 1),
    i = Math.floor(at),
    f = at - i;
  return `rgb(${RAMP[i].map((c, k) => Math.round(c + f * (RAMP[i + 1][k] - c))).join(",")})`;
}
function rampKey(low, high, label) {
  return h(
    "div",
    { class: "ramp" },
    h("span", {}, label),
    h("span", {}, number(low)),
    h("i", { style: { background: `linear-gradient(90deg, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(ramp).join(",")})` } }),
    h("span", {}, number(high)),
  );
}
