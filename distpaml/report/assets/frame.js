// What every page has: redrawing without losing the reader's place, sections that fail alone, dark and light.
let DATA = JSON.parse(by("data").textContent);

// Put what `make` gives, { children, links }, on the page; focus, open details and scrolled tables stay as they were.
function redraw(make, focus) {
  const main = by("main"),
    y = scrollY,
    active = document.activeElement;
  const keep = focus || (active && active.id) || null,
    group = active && active.dataset ? active.dataset.group : null;
  const place = active && active !== document.body && main.contains(active) ? trail(active, main) : null;
  const open = [...main.querySelectorAll("details[open]")].map((d) => trail(d, main));
  const scrolled = [...main.querySelectorAll(".scroll, .frames")]
    .filter((e) => e.scrollLeft)
    .map((e) => [trail(e, main), e.scrollLeft]);
  main.style.minHeight = `${main.offsetHeight}px`;
  forget();
  by("tip").hidden = true;
  const { children, links } = make();
  main.replaceChildren(...children.filter(Boolean));
  by("nav").replaceChildren(...links.map(([id, short]) => h("a", { href: `#${id}` }, short)));
  by("footer").textContent =
    `Written ${new Date(DATA.written).toLocaleString()} from ${DATA.paths.join(", ")}. One file; it needs no network.`;
  for (const p of open) {
    const d = follow(p, main);
    if (d && d.tagName === "DETAILS") d.open = true;
  }
  for (const [p, left] of scrolled) {
    const e = follow(p, main);
    if (e) e.scrollLeft = left;
  }
  main.style.minHeight = "";
  scrollTo(0, y);
  const target =
    (keep && by(keep)) ||
    (group && main.querySelector(`[data-group="${CSS.escape(group)}"]`)) ||
    (place && follow(place, main));
  if (target && target !== document.activeElement) target.focus({ preventScroll: true });
}

function section([id, title, , make]) {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), guarded(make));
}

// The path to an element, to find it again after a redraw.
function trail(element, root) {
  const steps = [];
  for (let e = element; e !== root; e = e.parentElement) steps.unshift([...e.parentElement.children].indexOf(e));
  return steps;
}
function follow(steps, root) {
  return steps.reduce((e, i) => (e ? e.children[i] : null), root);
}

function guarded(make) {
  try {
    return [make()].flat(3).filter(Boolean);
  } catch (error) {
    console.error(error);
    return [h("p", { class: "note" }, `This part cannot be drawn: ${error.message}`)];
  }
}

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  try {
    if (name) localStorage.setItem("theme", name);
    else {
      const kept = localStorage.getItem("theme");
      if (kept) document.documentElement.dataset.theme = kept;
    }
  } catch {
    /* no storage in a file */
  }
}
const isDark = () =>
  (document.documentElement.dataset.theme ||
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
theme();
by("theme").addEventListener("click", () => {
  theme(isDark() ? "light" : "dark");
  render();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => render());
addEventListener("beforeprint", drawAll);
