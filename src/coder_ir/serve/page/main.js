// The page: asks for a pool, ranks it here at every change of a setting, shows it three ways.

import { call, hasToken } from "./api.js";
import { asCurl, asPython, searchBody } from "./code.js";
import { join, showLists } from "./lists.js";
import { narrowed, rank } from "./policies.js";
import { showScatter } from "./scatter.js";
import { element, parsed } from "./text.js";
import { upload } from "./upload.js";

const HITS = 10; // a column
const POOL = 100; // documents each space brings
const SETTINGS = ["alpha", "tau", "p"];
const POLICY_ORDER = ["auto", "seq", "union", "compatibility", "topical"];
const at = (id) => document.getElementById(id);

const state = {
  index: null, // GET /v1/index
  pool: null, // POST /v1/pool of the query below
  query: "",
  lists: { exclude: [], require: [], where: [] },
  policy: "auto",
  values: {}, // policy: its settings
  n: POOL,
  maxRisk: 1,
  sentences: new Map(), // document and passage: the sentence that decided
  asked: 0, // number of the last question; answers to earlier ones are dropped
};

// Settings ------------------------------------------------------------------

// A server may allow fewer.
const shown = () => Math.min(HITS, state.index.settings.limits.k);
const most = () => Math.min(POOL, state.index.settings.limits.n);
const chosen = () => state.values[state.policy];
const defaults = (name) => state.index.settings.policies[name];

function resetSettings() {
  state.policy = state.index.settings.policy;
  state.values = Object.fromEntries(POLICY_ORDER.map((name) => [name, { ...defaults(name) }]));
  state.n = most();
  state.maxRisk = 1;
}

function showSettings() {
  for (const radio of document.querySelectorAll("#policies input")) {
    radio.checked = radio.value === state.policy;
  }
  const values = { ...chosen(), n: state.n, max_risk: state.maxRisk };
  for (const slider of document.querySelectorAll(".sliders input")) {
    const own = slider.id in values;
    slider.disabled = !own || (slider.id === "max_risk" && !state.index.settings.calibrated);
    const value = own ? values[slider.id] : defaults(slider.id === "p" ? "union" : "seq")[slider.id];
    slider.value = value;
    const output = document.querySelector(`output[for=${slider.id}]`);
    output.textContent = own ? String(value) : "–";
    slider.closest("label").classList.toggle("off", slider.disabled);
  }
}

function readSlider({ target }) {
  const value = Number(target.value);
  if (SETTINGS.includes(target.id)) chosen()[target.id] = value;
  else if (target.id === "n") state.n = value;
  else state.maxRisk = value;
  settingsChanged(target.id === "n");
}

/** Ranks anew at once; where n changes the server is asked, since n changes what is read. */
function settingsChanged(asks = false) {
  showSettings();
  remember();
  if (asks) later(search); else show();
}

// Searching -----------------------------------------------------------------

const listOf = (id) => at(id).value.split(";").map((part) => part.trim()).filter(Boolean);

async function search() {
  const query = at("query").value.trim();
  if (!query || !state.index) return; // without an index: `begin` asks once it is read
  const lists = { exclude: listOf("exclude"), require: listOf("require"), where: listOf("where") };
  const mine = ++state.asked;
  document.body.setAttribute("aria-busy", "true");
  try {
    const pool = await call("POST", "/v1/pool", { body: { query, n: state.n, ...lists } });
    if (mine !== state.asked) return;
    tell("");
    Object.assign(state, { query, lists, pool });
    state.words = new Set(pool.words);
    state.sentences.clear();
    remember();
    show();
  } catch (error) {
    if (mine === state.asked) tell(`${error.message}. ${error.advice ?? ""}`);
  } finally {
    if (mine === state.asked) document.body.removeAttribute("aria-busy");
  }
}

const keyOf = (one) => `${one.doc_id}\n${one.passage.number}`;

/** Asks which sentence decided each hit, where it is not known yet; the ranking does not wait. */
async function explain() {
  const { topical, coder } = rankings();
  const visible = [...topical.hits.slice(0, shown()), ...coder.hits.slice(0, shown())];
  if (visible.every((hit) => state.sentences.has(keyOf(hit)))) return;
  const mine = state.asked;
  const ours = { ...body(), explain: true };
  const plain = { query: ours.query, k: shown(), policy: "topical", explain: true, ...filled(state.lists) };
  try {
    const { results } = await call("POST", "/v1/search/batch", { body: { searches: [plain, ours] } });
    if (mine !== state.asked) return;
    for (const hit of results.flatMap(({ hits }) => hits)) state.sentences.set(keyOf(hit), hit.decisive);
    show({ again: false });
  } catch (error) {
    if (mine === state.asked) tell(`${error.message}. ${error.advice ?? ""}`);
  }
}

const filled = (lists) => Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length));

function body() {
  const { query, policy, n, maxRisk, lists } = state;
  return searchBody({ query, policy, settings: chosen(), defaults: defaults(policy), n, maxRisk, lists }, shown());
}

// Showing -------------------------------------------------------------------

function rankings() {
  const limits = { n: state.n, max_risk: state.maxRisk };
  return {
    topical: rank(state.pool, "topical", defaults("topical"), { ...limits, max_risk: 1 }),
    coder: rank(state.pool, state.policy, chosen(), limits),
  };
}

function show({ again = true } = {}) {
  if (!state.pool) return;
  for (const id of ["settings", "results", "pool", "tabs"]) at(id).hidden = false;
  const { topical, coder } = rankings();
  const focused = document.activeElement?.closest("li[data-doc]")?.dataset.doc;
  const column = document.activeElement?.closest("section")?.id;
  showLists({
    topical, coder, shown: shown(), words: state.words,
    decisive: (one) => state.sentences.get(keyOf(one)) ?? "",
    again: () => show({ again: false }),
  });
  if (focused) find(column, focused)?.querySelector("button").focus();
  at("coder-head").textContent = `CoDeR: ${state.policy}`;
  const { candidates } = narrowed(state.pool, chosen().spaces, state.n);
  showScatter({
    candidates, coder, shown: shown(), words: state.words, goTo,
    tau: state.policy === "seq" ? chosen().tau : undefined,
  });
  at("legend").textContent = legend(candidates.length, coder);
  showConstraint();
  showCode();
  if (again) later(explain);
}

function legend(size, coder) {
  const gone = coder.filtered.length ? `; ${coder.filtered.length} filtered (hollow)` : "";
  const risk = state.index.settings.calibrated ? "; coloured by risk: blue low, yellow middle, red high" : "";
  return `${size} candidates${gone}${risk}`;
}

function showConstraint() {
  const { probability, excluded, required, topic, spans } = state.pool.constraint;
  const sure = `${Math.round(100 * probability)}%`;
  const chips = (label, list) => (list.length
    ? [` ${label} `, ...list.flatMap((text) => [element("b", { class: "chip" }, text), " "])] : []);
  const found = probability >= state.index.settings.stated;
  at("constraint").replaceChildren(...(found
    ? [...parsed(state.query, spans), ` A constraint is stated (${sure} sure).`,
      ...chips("Ruled out:", excluded), ...chips("Required:", required),
      ...(topic && excluded.length ? chips("Left to look for:", [topic]) : [])]
    : [`No constraint was found in this query (${sure}), so auto keeps the topical order.`]));
}

function tell(words) {
  at("message").textContent = words;
  at("message").hidden = !words;
}

const find = (column, id) => document.querySelector(`#${column ?? "coder"} li[data-doc="${CSS.escape(id)}"]`);

/** Leads from a point to its hit. */
function goTo(id) {
  const hit = find("coder", id) ?? find("topical", id);
  if (!hit) return;
  openTab(hit.closest("section").id);
  hit.closest("details")?.setAttribute("open", "");
  hit.scrollIntoView({ block: "center" });
  hit.querySelector("button").focus();
}

function point(id) {
  for (const node of document.querySelectorAll(".pointed")) node.classList.remove("pointed");
  if (id === undefined) return;
  const same = `[data-doc="${CSS.escape(id)}"]`;
  for (const node of document.querySelectorAll(`#results ${same}, #scatter ${same}`)) node.classList.add("pointed");
}

function openTab(name) {
  at("results").dataset.tab = name;
  for (const tab of document.querySelectorAll("#tabs button")) {
    tab.setAttribute("aria-pressed", String(tab.dataset.tab === name));
  }
}

// Code ----------------------------------------------------------------------

let language = "";

function showCode() {
  const write = { python: asPython, curl: asCurl }[language];
  at("code").hidden = !write;
  if (write) at("code").textContent = write(body(), { origin: location.origin, token: hasToken() });
}

async function copy(name) {
  language = name;
  showCode();
  const done = await navigator.clipboard?.writeText(at("code").textContent).then(() => true, () => false);
  at("copied").textContent = done ? "Copied." : "Copy it from below.";
  setTimeout(() => { at("copied").textContent = ""; }, 3000);
}

// Documents -----------------------------------------------------------------

let stopUpload;

async function add(files) {
  if (!files.length || stopUpload) return;
  stopUpload = new AbortController();
  at("upload").hidden = false;
  tell("");
  const progress = (name, share, count) => {
    at("uploaded").value = share;
    at("upload-words").textContent = `${name}: ${count} documents`;
  };
  try {
    const { written, unchanged } = await upload(files, { progress, signal: stopUpload.signal });
    at("upload-words").textContent = `${written} documents indexed, ${unchanged} were there already`;
  } catch (error) {
    const stopped = error.name === "AbortError";
    tell(stopped ? "Stopped; what was indexed stays." : `${error.message} ${error.advice ?? ""}`);
    at("upload-words").textContent = `${error.total?.written ?? 0} documents indexed before it`;
  }
  stopUpload = undefined;
  at("cancel").hidden = true;
  try {
    await readIndex();
  } catch (error) {
    tell(`${error.message}. ${error.advice ?? ""}`);
  }
  if (state.query) await search();
}

function chooseFiles(files) {
  at("cancel").hidden = false;
  add([...files]);
}

// Beginning -----------------------------------------------------------------

async function readIndex() {
  state.index = await call("GET", "/v1/index");
  const { documents, model, settings } = state.index;
  const parts = [`${documents.toLocaleString("en")} documents`, model.spec];
  if (settings.hybrid) parts.push("hybrid");
  if (settings.read_only) parts.push("read-only");
  at("index").textContent = parts.join(" · ");
  at("index").title = settings.reason;
  at("add").disabled = settings.read_only;
}

/** Query and settings live in the address, so that a link shows the same. */
function remember() {
  const kept = new URLSearchParams({ q: state.query });
  if (state.policy !== state.index.settings.policy) kept.set("policy", state.policy);
  for (const name of SETTINGS) {
    if (name in chosen() && chosen()[name] !== defaults(state.policy)[name]) kept.set(name, chosen()[name]);
  }
  if (state.n !== most()) kept.set("n", state.n);
  if (state.maxRisk < 1) kept.set("max_risk", state.maxRisk);
  for (const [name, list] of Object.entries(state.lists)) if (list.length) kept.set(name, list.join("; "));
  history.replaceState(null, "", `#${kept}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const number = (name, low, high) => {
    const value = Number(kept.get(name));
    return kept.get(name) !== null && value >= low && value <= high ? value : undefined;
  };
  if (POLICY_ORDER.includes(kept.get("policy"))) state.policy = kept.get("policy");
  for (const name of SETTINGS) {
    const value = number(name, name === "tau" ? -1 : 0, 1);
    if (value !== undefined && name in chosen()) chosen()[name] = value;
  }
  state.n = Math.round(number("n", shown(), most()) ?? most());
  state.maxRisk = state.index.settings.calibrated ? number("max_risk", 0, 1) ?? 1 : 1;
  const fields = { query: "q", exclude: "exclude", require: "require", where: "where" };
  for (const [id, name] of Object.entries(fields)) {
    at(id).value = kept.get(name) ?? at(id).value; // what was typed before this ran stays
    if (id !== "query" && kept.get(name)) at("more").open = true;
  }
}

const timers = new Map(); // one for each kind of work
function later(work) {
  clearTimeout(timers.get(work));
  timers.set(work, setTimeout(work, 350));
}

const THEMES = ["", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("coder-ir theme", name);
  at("theme").title = `Colours: ${name || "as the system has them"}`;
}

function listen() {
  at("search").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  at("examples").addEventListener("click", ({ target }) => {
    if (target.tagName !== "BUTTON") return;
    at("query").value = target.textContent;
    search();
  });
  at("policies").addEventListener("change", ({ target }) => {
    state.policy = target.value;
    settingsChanged();
  });
  for (const slider of document.querySelectorAll(".sliders input")) slider.addEventListener("input", readSlider);
  at("reset").addEventListener("click", () => { resetSettings(); settingsChanged(true); });
  at("python").addEventListener("click", () => copy("python"));
  at("curl").addEventListener("click", () => copy("curl"));
  at("tabs").addEventListener("click", ({ target }) => target.dataset.tab && openTab(target.dataset.tab));
  at("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "";
    theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  });
  at("add").addEventListener("click", () => at("files").click());
  at("files").addEventListener("change", ({ target }) => { chooseFiles(target.files); target.value = ""; });
  at("cancel").addEventListener("click", () => stopUpload?.abort());
  listenToDrops();
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    at("query").select();
  });
  const results = at("results");
  results.addEventListener("pointerover", ({ target }) => point(target.closest("li[data-doc]")?.dataset.doc));
  results.addEventListener("pointerleave", () => point());
  results.addEventListener("focusin", ({ target }) => point(target.closest("li[data-doc]")?.dataset.doc));
  new ResizeObserver(join).observe(results);
  addEventListener("resize", () => show({ again: false }));
}

function listenToDrops() {
  const carries = (event) => event.dataTransfer?.types.includes("Files") && !at("add").disabled;
  addEventListener("dragover", (event) => { if (carries(event)) { event.preventDefault(); at("drop").hidden = false; } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) at("drop").hidden = true; });
  addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    at("drop").hidden = true;
    chooseFiles(event.dataTransfer.files);
  });
}

async function begin() {
  theme(localStorage.getItem("coder-ir theme") ?? "");
  listen();
  try {
    await readIndex();
  } catch (error) {
    tell(`${error.message}. ${error.advice ?? ""}`);
    return;
  }
  resetSettings();
  at("policies").append(...POLICY_ORDER.map((name) => {
    const radio = element("input", { type: "radio", name: "policy", value: name });
    return element("label", {}, radio, element("span", {}, name));
  }));
  at("examples").replaceChildren(...state.index.settings.examples.map((text) =>
    element("li", {}, element("button", { type: "button" }, text))));
  recall();
  showSettings();
  if (at("query").value) await search();
}

begin();
