// Candidates as points: topical to the right, compatibility upwards.

import { drawn, element, marked, nameOf, riskClass, withoutTitle } from "./text.js";

const EDGE = { left: 46, right: 14, top: 12, bottom: 38 };

function limits(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const room = Math.max(0.02, (high - low) * 0.06);
  return [low - room, high + room];
}

function ticks([low, high]) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((size) => (high - low) / size <= 7) ?? 0.5;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return found;
}

/** Draws the pool; `tau` is a line where the policy has one. */
export function showScatter({ candidates, coder, shown, tau, words, goTo }) {
  const svg = document.getElementById("scatter");
  const width = svg.clientWidth || 640, height = svg.clientHeight || 320;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  hideTip();
  if (!candidates.length) return;
  const xs = limits(candidates.map((one) => one.cosine));
  const ys = limits(candidates.map((one) => one.compatibility));
  const scale = ([low, high], from, to) => (value) => from + ((value - low) / (high - low)) * (to - from);
  const x = scale(xs, EDGE.left, width - EDGE.right), y = scale(ys, height - EDGE.bottom, EDGE.top);
  svg.append(...axes({ xs, ys, x, y, width, height }));
  if (tau !== undefined && tau > ys[0] && tau < ys[1]) {
    svg.append(drawn("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(tau), y2: y(tau), class: "tau" }),
      drawn("text", { x: width - EDGE.right, y: y(tau) - 4, "text-anchor": "end", class: "tick" }, `τ ${tau}`));
  }
  const ranks = new Map(coder.hits.slice(0, shown).map((hit) => [hit.doc_id, hit.rank]));
  const gone = new Set(coder.filtered.map((one) => one.doc_id));
  const inOrder = [...candidates].sort((a, b) => a.cosine - b.cosine);
  // Hits are drawn last, on top; the arrow keys go by the place from left to right.
  const dots = inOrder.map((one) => {
    const rank = ranks.get(one.doc_id);
    const dot = point(one, { rank, gone: gone.has(one.doc_id), at: [x(one.cosine), y(one.compatibility)] });
    dot.addEventListener("pointerenter", () => showTip(dot, one, words));
    dot.addEventListener("focus", () => showTip(dot, one, words));
    dot.addEventListener("pointerleave", hideTip);
    dot.addEventListener("blur", hideTip);
    dot.addEventListener("click", () => goTo(one.doc_id));
    return dot;
  });
  const hits = dots.filter((dot) => dot.dataset.rank);
  svg.append(...dots.filter((dot) => !dot.dataset.rank), ...hits.reverse());
  roving(dots, goTo);
}

function axes({ xs, ys, x, y, width, height }) {
  const bottom = height - EDGE.bottom;
  const text = (value, attributes) => drawn("text", { class: "tick", ...attributes }, value);
  return [
    ...ticks(xs).flatMap((value) => [
      drawn("line", { x1: x(value), x2: x(value), y1: EDGE.top, y2: bottom, class: "grid" }),
      text(value.toFixed(2), { x: x(value), y: bottom + 15, "text-anchor": "middle" })]),
    ...ticks(ys).flatMap((value) => [
      drawn("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value), class: "grid" }),
      text(value.toFixed(2), { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" })]),
    text("topical →", { x: width - EDGE.right, y: height - 4, "text-anchor": "end", class: "axis" }),
    text("compatibility →", {
      x: 0, y: 0, class: "axis", "text-anchor": "end",
      transform: `translate(11 ${EDGE.top}) rotate(-90)`,
    }),
  ];
}

function point(one, { rank, gone, at: [x, y] }) {
  const what = rank ? `hit ${rank}` : gone ? "filtered" : "candidate";
  const dot = drawn("g", {
    transform: `translate(${x} ${y})`, tabindex: -1, role: "button", "data-doc": one.doc_id,
    class: `dot ${riskClass(one.risk)} ${rank ? "hit" : ""} ${gone ? "gone" : ""}`,
    "aria-label": `${nameOf(one)}, ${what}, topical ${one.cosine.toFixed(2)}, compatibility ${one.compatibility.toFixed(2)}`,
  }, drawn("circle", { r: rank ? 9 : 4.5 }));
  if (rank) {
    dot.dataset.rank = rank;
    dot.append(drawn("text", { "text-anchor": "middle", dy: "0.36em" }, String(rank)));
  }
  return dot;
}

/** One stop of the Tab key for all points; arrow keys inside. */
function roving(dots, goTo) {
  dots[0]?.setAttribute("tabindex", 0);
  dots.forEach((dot, i) => dot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter") goTo(dot.dataset.doc);
    if (event.key === "Escape") hideTip();
    if (!step) return;
    event.preventDefault();
    const next = dots[(i + step + dots.length) % dots.length];
    dot.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  }));
}

function showTip(dot, one, words) {
  const tip = document.getElementById("tip");
  const risk = one.risk === null ? "" : `, risk ${Math.round(100 * one.risk)}%`;
  tip.replaceChildren(
    element("b", {}, nameOf(one)),
    element("p", {}, ...marked(withoutTitle(one.text, one), { words })),
    element("small", {}, `topical ${one.cosine.toFixed(3)}, compatibility ${one.compatibility.toFixed(3)}${risk}`));
  tip.hidden = false;
  const frame = tip.parentNode.getBoundingClientRect(), at = dot.getBoundingClientRect();
  const left = at.left + at.width / 2 - frame.left - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(0, Math.min(frame.width - tip.offsetWidth, left))}px`;
  const above = at.top - frame.top - tip.offsetHeight - 8;
  tip.style.top = `${above > -60 ? above : at.bottom - frame.top + 8}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}
