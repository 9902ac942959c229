// Elements without innerHTML: whatever comes from a file becomes text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key === "value" || key === "checked" || key === "selected") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const by = (id) => document.getElementById(id);

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4)
    return value
      .toExponential(Math.max(0, digits - 1))
      .replace("e+", "e")
      .replace("-", "−");
  const text = size >= 10 ** digits ? value.toFixed(0) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const percent = (value) => signed(Number((100 * value).toPrecision(2))) + "\u00a0%";
const plain = (name) => name.replaceAll("_", " ");

const withUnit = (p) => `${plain(p.name)}${p.unit ? `, ${p.unit}` : ""}`;

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${number(seconds, 2)} s`;
  if (seconds < 5400) return `${number(seconds / 60, 2)} min`;
  return `${number(seconds / 3600, 3)} h`;
}

function unpack(packed) {
  const text = atob(packed.data),
    wide = packed.bits === 16,
    count = wide ? text.length / 2 : text.length;
  const values = new Float64Array(count),
    scale = (packed.high - packed.low) / (2 ** packed.bits - 1);
  for (let i = 0; i < count; i++) {
    const step = wide ? text.charCodeAt(2 * i) + 256 * text.charCodeAt(2 * i + 1) : text.charCodeAt(i);
    values[i] = packed.low + scale * step;
  }
  return values;
}

function say(text) {
  by("said").textContent = text;
}

// A row of buttons of which one is pressed.
function choice(label, options, current, pick) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": label },
    h("span", { class: "name" }, label),
    options.map(([value, text, title]) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(value === current),
          title,
          onclick: () => pick(value),
        },
        text,
      ),
    ),
  );
}

function select(label, options, current, pick) {
  return h(
    "label",
    { class: "pick" },
    h("span", { class: "name" }, label),
    h(
      "select",
      { onchange: (event) => pick(event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: String(value) === String(current) }, text)),
    ),
  );
}

function toggle(label, on, flip) {
  return h(
    "label",
    { class: "switch" },
    h("input", { type: "checkbox", checked: on, onchange: (event) => flip(event.target.checked) }),
    h("span", {}, label),
  );
}

function tile(value, label, kind = "") {
  return h("div", { class: `tile ${kind}` }, h("b", {}, value), h("span", {}, label));
}

function table(head, rows, attributes = {}) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": attributes["aria-label"] || "Table" },
    h(
      "table",
      attributes,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((cell) => h("th", { scope: "col" }, cell)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell, i) => (i ? h("td", {}, cell) : h("th", { scope: "row" }, cell))),
          ),
        ),
      ),
    ),
  );
}

// Numbers behind a figure, made when they are opened.
function numbers(make) {
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}
