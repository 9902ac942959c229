// Axes: linear, log and signed-log scales with their ticks.
const scales = {
  linear: { to: (v) => v, ticks: linearTicks },
  log: { to: (v) => Math.log10(Math.max(v, 1e-300)), ticks: logTicks },
  signed: { to: (v) => Math.asinh(v), ticks: signedTicks },
};

function linearTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count),
    base = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].find((m) => m * base >= raw) * base;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high, count) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of [1, 2, 5]) {
      const v = Number((m * 10 ** e).toPrecision(6));
      if (v >= low * 0.999 && v <= high * 1.001) ticks.push(v);
    }
  const tens = ticks.filter((v) => Math.abs(Math.log10(v) % 1) < 1e-6);
  if (ticks.length < 2) return linearTicks(low, high, count);
  return ticks.length > 2 * count && tens.length > 1 ? tens : ticks;
}

function signedTicks(low, high, count) {
  if (high - low < 4) return linearTicks(low, high, count);
  const sizes = [1, 2, 5, 10, 20, 50, 100, 1000, 1e4, 1e5];
  const all = [...sizes.map((v) => -v).reverse(), 0, ...sizes].filter((v) => v >= low && v <= high);
  const span = Math.asinh(high) - Math.asinh(low);
  return all.filter(
    (v) =>
      v === 0 ||
      !all.some(
        (o) => o !== v && Math.abs(o) < Math.abs(v) && Math.abs(Math.asinh(o) - Math.asinh(v)) < span / (2.2 * count),
      ),
  );
}

function extent(values, kind, pad = 0.05) {
  const scale = scales[kind || "linear"];
  let low = Infinity,
    high = -Infinity;
  for (const v of values)
    if (v !== null && Number.isFinite(v) && !(kind === "log" && v <= 0)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  if (low > high) return [0, 1];
  if (low === high) {
    const by = Math.abs(low) * 0.1 || 0.5;
    return [low - by, high + by];
  }
  const a = scale.to(low),
    b = scale.to(high),
    margin = (b - a) * pad;
  const back = kind === "log" ? (v) => 10 ** v : kind === "signed" ? Math.sinh : (v) => v;
  return [back(a - margin), back(b + margin)];
}
