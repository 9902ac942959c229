// Hover, touch and arrow keys: the nearest point is named in the tooltip and read out.
function listen(svg, points) {
  const ring = s("circle", { r: 7, class: "ring", visibility: "hidden" });
  svg.append(ring);
  let current = -1;
  const show = (index, aloud) => {
    current = index;
    const point = points[index],
      box = svg.getBoundingClientRect(),
      tip = by("tip");
    ring.setAttribute("cx", point.px);
    ring.setAttribute("cy", point.py);
    ring.setAttribute("visibility", "visible");
    tip.replaceChildren(...point.text.split("\n").map((line, i) => h(i ? "div" : "strong", {}, line)));
    tip.hidden = false;
    const x = box.left + point.px,
      y = box.top + point.py;
    tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(6, y - tip.offsetHeight - 12 > 60 ? y - tip.offsetHeight - 12 : y + 16)}px`;
    if (aloud) say(point.text.replaceAll("\n", ", "));
  };
  const hide = () => {
    ring.setAttribute("visibility", "hidden");
    by("tip").hidden = true;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top;
    let best = -1,
      near = 48 ** 2;
    points.forEach((p, i) => {
      const d = (p.px - x) ** 2 + (p.py - y) ** 2;
      if (d < near) {
        near = d;
        best = i;
      }
    });
    best < 0 ? hide() : show(best, false);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key],
      jump = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") return hide();
    if (!step && !jump) return;
    event.preventDefault();
    if (current < 0) return show(0, true);
    if (step) return show((current + step + points.length) % points.length, true);
    const names = [...new Set(points.map((p) => p.series))],
      at = names.indexOf(points[current].series);
    const name = names[(at + jump + names.length) % names.length],
      x = points[current].x;
    const same = points
      .map((p, i) => [Math.abs(p.x - x), i])
      .filter(([, i]) => points[i].series === name)
      .sort((a, b) => a[0] - b[0]);
    show(same[0][1], true);
  });
}
