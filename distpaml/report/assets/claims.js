// The paper's claims, each with its verdict and its numbers.
const NO_CLAIMS = "The paper makes no claim about this experiment, or no run here chooses by its model.";
const PILLS = { supported: ["✓", "yes"], "not supported": ["✗", "no"], "not testable": ["?", "open"] };

function verdict(entry) {
  const [icon, kind] = PILLS[entry.verdict];
  return h(
    "div",
    { class: `claim ${kind}`, "data-verdict": entry.verdict },
    entry.measure ? h("span", { class: "measure" }, DATA.measures[entry.measure].label) : null,
    h("span", { class: `pill ${kind}` }, h("b", { "aria-hidden": "true" }, icon), ` ${entry.verdict}`),
    h("p", {}, entry.number.replace(/-(?=[\d.])/g, "−")),
  );
}

// Claims that these runs cannot test, in one sentence for all that share a reason.
function untestable(list) {
  const reasons = new Map();
  for (const { number, measure } of list)
    reasons.set(number, [...(reasons.get(number) || []), measure ? DATA.measures[measure].label : null]);
  return [...reasons].map(([reason, measures]) => {
    const of = measures.filter(Boolean).join(", ");
    return h(
      "p",
      { class: "caption", "data-untestable": measures.length },
      `Not testable${of ? ` (${of})` : ""}: ${reason}`,
    );
  });
}

// All claims in one sentence, where these runs can test none of them.
function noneTestable(list) {
  const of = (key) => [...new Set(list.map((claim) => claim[key]))],
    methods = of("method").join(", "),
    names = of("claim").join("; ");
  const sentence = `The paper's claims cannot be tested with these runs, for ${methods}: ${of("number").join(" ")}`;
  return [h("p", { class: "lead", "data-untestable": list.length }, `${sentence} The claims are: ${names}.`)];
}

function claimsSection() {
  const entry = experiment(),
    groups = new Map();
  for (const claim of entry.claims) {
    if (!groups.has(claim.claim)) groups.set(claim.claim, new Map());
    const methods = groups.get(claim.claim);
    if (!methods.has(claim.method)) methods.set(claim.method, []);
    methods.get(claim.method).push(claim);
  }
  if (!groups.size) return [h("p", { class: "lead" }, NO_CLAIMS)];
  if (entry.claims.every((claim) => claim.verdict === "not testable")) return noneTestable(entry.claims);
  const count = (verdict) => entry.claims.filter((claim) => claim.verdict === verdict).length;
  const lead =
    "The paper's claims about this kind of experiment, tested for each method that chooses by its model. " +
    `${count("supported")} supported, ${count("not supported")} not supported, ${count("not testable")} not testable ` +
    `with these runs. Verdicts are not corrected for multiple testing. ${coverage()}`;
  return [
    h("p", { class: "lead" }, lead),
    [...groups].map(([name, methods]) =>
      h(
        "article",
        { class: "claims" },
        h("h3", {}, name),
        h("p", { class: "rule" }, `Supported if ${[...methods.values()][0][0].rule}.`),
        [...methods].map(([method, list]) =>
          h(
            "div",
            { class: "claim-row" },
            h("h4", {}, method),
            h(
              "div",
              {},
              h("div", { class: "cards" }, list.filter((claim) => claim.verdict !== "not testable").map(verdict)),
              untestable(list.filter((claim) => claim.verdict === "not testable")),
            ),
          ),
        ),
      ),
    ),
  ];
}
