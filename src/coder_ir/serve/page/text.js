// Elements out of plain text: nothing here is ever read as HTML.

const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)?/gu;
const SHORT = 260; // characters of a text that is not unfolded

/** An element with attributes and children; texts become text nodes. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

/** The same for a drawing. */
export function drawn(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** A query with the parts that state its constraint marked; `start` and `end` count code points. */
export function parsed(query, spans) {
  const letters = [...query];
  const parts = [];
  let at = 0;
  for (const { start, end, role } of spans) {
    parts.push(letters.slice(at, start).join(""));
    parts.push(element("span", { class: `span ${role}`, title: role }, letters.slice(start, end).join("")));
    at = end;
  }
  return spans.length ? ["“", ...parts, letters.slice(at).join(""), "”"] : [];
}

/** Text with the constraint's words marked. */
function worded(text, words) {
  const parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!words.has(word.toLowerCase().replace("’", "'"))) continue;
    parts.push(text.slice(end, index), element("b", { class: "word" }, word));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
}

/** A passage, or the part of it about the sentence that decided, with that and the words marked. */
export function marked(text, { decisive = "", words = new Set(), whole = false }) {
  const at = decisive ? text.indexOf(decisive) : -1;
  const parts = at < 0
    ? [text, "", ""]
    : [text.slice(0, at), decisive, text.slice(at + decisive.length)];
  if (!whole) {
    const room = Math.max(60, SHORT - parts[1].length);
    if (parts[1] && parts[0].length > room / 2) {
      parts[0] = `… ${parts[0].slice(-Math.floor(room / 2)).replace(/^\S*\s/, "")}`;
    }
    const last = parts[1] ? 2 : 0;
    const left = parts[1] ? Math.max(40, room - parts[0].length) : SHORT;
    if (parts[last].length > left) parts[last] = `${parts[last].slice(0, left).replace(/\s\S*$/, "")} …`;
  }
  const [before, sentence, after] = parts.map((part) => worded(part, words));
  const decided = parts[1] ? [element("mark", { title: "decided the compatibility" }, ...sentence)] : [];
  return [...before, ...decided, ...after];
}

/** What a candidate is called: its title, or its id. */
export const nameOf = (one) => one.title || one.doc_id;

/** A passage, or its first sentence, without the title in front, which is shown already. */
export function withoutTitle(text, { title }) {
  return title && text.startsWith(`${title} `) ? text.slice(title.length + 1) : text;
}

export function riskClass(risk) {
  if (risk === null) return "unknown";
  return risk < 0.34 ? "low" : risk < 0.67 ? "middle" : "high";
}
