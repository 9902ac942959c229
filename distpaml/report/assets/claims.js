// The paper's claims, each with its verdict and its numbers.
const PILLS = { supported: ["✓", "yes"], "not supported": ["✗", "no"], "not testable": ["?", "open"] };
const COLUMNS = { rmse: "RMSE", nll: "NLL", rmse_paper: "RMSE, paper's", nll_paper: "NLL, paper's" };

function verdict(entry) {
  const [icon, kind] = PILLS[entry.verdict];
  return h("div", { class: `claim ${kind}`, "data-verdict": entry.verdict },
    entry.measure ? h("span", { class: "measure" }, COLUMNS[entry.measure]) : null,
    h("span", { class: `pill ${kind}` }, h("b", { "aria-hidden": "true" }, icon), ` ${entry.verdict}`), h("p", {}, entry.number.replace(/-(?=[\d.])/g, "−")));
}

function claimsSection() {
  const entry = experiment(), groups = new Map();
  for (const claim of entry.claims) {
    if (!groups.has(claim.claim)) groups.set(claim.claim, new Map());
    const methods = groups.get(claim.claim);
    if (!methods.has(claim.method)) methods.set(claim.method, []);
    methods.get(claim.method).push(claim);
  }
  if (!groups.size) return [h("p", { class: "lead" }, "The paper has no claim about this experiment, or there is no run of paml or paml-pool.")];
  const count = (verdict) => entry.claims.filter((claim) => claim.verdict === verdict).length;
  return [h("p", { class: "lead" }, `Claims of the paper about such an experiment, put to both readings of PAML. ${count("supported")} supported, ${count("not supported")} not supported, ${count("not testable")} not testable with these runs. Verdicts are not corrected for their number. ${coverage()}`),
    [...groups].map(([name, methods]) => h("article", { class: "claims" }, h("h3", {}, name),
      h("p", { class: "rule" }, `Supported if ${[...methods.values()][0][0].rule}.`),
      [...methods].map(([method, list]) => h("div", { class: "claim-row" }, h("h4", {}, method), h("div", { class: "cards" }, list.map(verdict))))))];
}
