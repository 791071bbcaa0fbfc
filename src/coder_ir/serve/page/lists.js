// The two columns, and the lines that join a document in one to itself in the other.

import { drawn, element, marked, nameOf, riskClass, withoutTitle } from "./text.js";

const unfolded = new Set();

function bar(label, value) {
  const width = Math.round(100 * Math.max(0, Math.min(1, value)));
  const fill = drawn("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { width: 100, height: 4, class: "track" }),
    drawn("rect", { width, height: 4, class: label }));
  return element("span", { class: "bar", title: `${label} ${value}` },
    element("span", {}, `${label} `, element("b", {}, value.toFixed(2))), fill);
}

function scores(one) {
  const parts = [bar("topic", one.cosine), bar("compatible", one.compatibility)];
  if (one.risk !== null) {
    parts.push(element("span", {
      class: `risk ${riskClass(one.risk)}`,
      title: "probability that it breaks the constraint",
    }, `risk ${Math.round(100 * one.risk)}%`));
  }
  return element("div", { class: "scores" }, ...parts);
}

function moved(hit, before, depth) {
  if (before === undefined) return element("span", { class: "move up" }, "new");
  const by = before - hit.rank;
  if (!by) return element("span", { class: "move" }, "=");
  const words = `${by > 0 ? "up" : "down"} ${Math.abs(by)} from ${before}`;
  return element("span", { class: `move ${by > 0 ? "up" : "down"}`, title: words, "aria-label": words },
    `${by > 0 ? "▲" : "▼"} ${before > depth ? `from ${before}` : Math.abs(by)}`);
}

/** One hit; Enter or a click unfolds its text. */
function card(one, { words, decisive, movement, again }) {
  const whole = unfolded.has(one.doc_id);
  const text = withoutTitle(one.text, one);
  const sentence = withoutTitle(decisive, one);
  const fold = () => {
    if (whole) unfolded.delete(one.doc_id); else unfolded.add(one.doc_id);
    again(one.doc_id);
  };
  const name = element("button", {
    type: "button", class: "name", "aria-expanded": String(whole), title: one.doc_id,
  }, nameOf(one));
  name.addEventListener("click", fold);
  return element("li", { "data-doc": one.doc_id, class: whole ? "whole" : "" },
    element("div", { class: "head" },
      one.rank ? element("span", { class: "rank" }, String(one.rank)) : undefined, name, movement),
    element("p", { class: "text" }, ...marked(text, { decisive: sentence, words, whole })),
    scores(one),
    one.why ? element("p", { class: "why" }, one.why) : undefined);
}

/** Both columns anew; `decisive` finds the sentence of a candidate, or "". */
export function showLists({ topical, coder, shown, words, decisive, again }) {
  const before = new Map(topical.hits.map((hit) => [hit.doc_id, hit.rank]));
  const after = new Map(coder.hits.map((hit) => [hit.doc_id, hit.rank]));
  const gone = new Set(coder.filtered.map((one) => one.doc_id));
  const place = (one) => {
    const rank = after.get(one.doc_id);
    if (gone.has(one.doc_id)) return element("span", { class: "move down" }, "filtered");
    if (rank === undefined) return element("span", { class: "move down" }, "not in the pool");
    return rank > shown ? element("span", { class: "move down" }, `now ${rank}`) : undefined;
  };
  const cards = (list, movement) => list.map((one) =>
    card(one, { words, decisive: decisive(one), movement: movement(one), again }));
  document.querySelector("#topical ol").replaceChildren(
    ...cards(topical.hits.slice(0, shown), place));
  document.querySelector("#coder > ol").replaceChildren(
    ...cards(coder.hits.slice(0, shown), (hit) => moved(hit, before.get(hit.doc_id), shown)));
  const filtered = document.getElementById("filtered");
  filtered.hidden = !coder.filtered.length;
  filtered.querySelector("summary").textContent = `${coder.filtered.length} filtered, and why`;
  filtered.querySelector("ol").replaceChildren(...cards(coder.filtered.slice(0, 50), () => undefined));
  join();
}

/** Draws the lines; called again whenever the cards take another place. */
export function join() {
  const svg = document.getElementById("joins");
  const frame = svg.getBoundingClientRect();
  svg.replaceChildren();
  if (!frame.width) return;
  svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const middle = (card) => {
    const box = card.querySelector(".head").getBoundingClientRect();
    return box.top + box.height / 2 - frame.top;
  };
  const left = document.querySelectorAll("#topical li");
  for (const card of left) {
    const other = document.querySelector(`#coder > ol > li[data-doc="${CSS.escape(card.dataset.doc)}"]`);
    if (!other) continue;
    const [from, to] = [middle(card), middle(other)];
    const half = frame.width / 2;
    const way = [...other.parentNode.children].indexOf(other) - [...left].indexOf(card);
    svg.append(drawn("path", {
      d: `M0 ${from} C${half} ${from} ${half} ${to} ${frame.width} ${to}`,
      class: way < 0 ? "up" : way > 0 ? "down" : "",
      "data-doc": card.dataset.doc,
    }));
  }
}
