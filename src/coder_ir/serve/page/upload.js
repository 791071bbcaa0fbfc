// Files to documents, a few at a time, so that the bar shows what the index has taken.

import { call } from "./api.js";

const TOGETHER = 32; // documents a request
const MOST = 400_000; // characters a request
const IDS = ["_id", "id", "doc_id"];
const SCALAR = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null)$/;

/** Lines of jsonl for every document of a file, with about the share of the file that was read. */
async function* documents(file) {
  const ending = file.name.toLowerCase().replace(/^.*\./, "");
  if (ending === "txt" || ending === "md") {
    let text = "";
    for await (const piece of pieces(file)) text += piece;
    yield { line: JSON.stringify({ _id: file.name, text }), read: 1, at: 1 };
  } else if (ending === "csv" || ending === "tsv") {
    yield* fromTable(file, ending === "csv" ? "," : "\t");
  } else {
    yield* fromLines(file);
  }
}

async function* pieces(file) {
  const reader = file.stream().pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader();
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      throw error instanceof TypeError ? new Error(`${file.name} is not UTF-8; save it as UTF-8.`) : error;
    }
    if (piece.done) return;
    yield piece.value;
  }
}

async function* fromLines(file) {
  let rest = "", at = 0, seen = 0;
  const row = (line) => {
    at += 1;
    seen += line.length + 1;
    return { line: withId(line, `${file.name}:${at}`), read: seen / file.size, at };
  };
  for await (const text of pieces(file)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    yield* lines.map(row).filter(({ line }) => line.trim());
  }
  if (rest.trim()) yield row(rest);
}

/** A line as it is; one that names no id gets one. What is no JSON, the server shall say. */
function withId(line, id) {
  try {
    const row = JSON.parse(line);
    if (row && typeof row === "object" && !IDS.some((name) => name in row)) {
      const rest = line.slice(line.indexOf("{") + 1); // as it is: numbers may be longer than ours
      return `{"_id": ${JSON.stringify(id)}${rest.trim() === "}" ? "" : ","}${rest}`;
    }
  } catch { /* the server names the fault */ }
  return line;
}

async function* fromTable(file, separator) {
  let names, number = 0;
  for await (const { cells, read } of tableRows(file, separator)) {
    number += 1;
    if (!names) { names = cells; continue; }
    if (cells.length !== names.length) {
      throw new Error(`${file.name}: row ${number} has ${cells.length} cells, the header ${names.length}`);
    }
    const fields = names.map((name, i) => `${JSON.stringify(name)}: ${cellJson(name, cells[i])}`);
    const known = IDS.some((name) => names.includes(name));
    if (!known) fields.unshift(`"_id": ${JSON.stringify(`${file.name}:${number}`)}`);
    yield { line: `{${fields.join(", ")}}`, read, at: number };
  }
}

/** A cell as JSON: metadata that is a number, true, false or null is that, as for `coder-ir index`. */
function cellJson(name, cell) {
  if (name === "text" || name === "title" || IDS.includes(name)) return JSON.stringify(cell);
  const bare = cell.trim();
  return SCALAR.test(bare) && Math.abs(Number(bare)) !== Infinity ? bare : JSON.stringify(bare);
}

/** Rows of a table; a cell in quotes may hold separators, line ends and doubled quotes. */
async function* tableRows(file, separator) {
  let cells = [], cell = "", inside = false, closed = false, seen = 0;
  for await (const text of pieces(file)) {
    for (const character of text) {
      seen += 1;
      if (inside && character === '"') { inside = false; closed = true; continue; }
      if (closed && character === '"') { cell += '"'; inside = true; closed = false; continue; }
      closed = false;
      if (inside) cell += character;
      else if (character === '"' && !cell) inside = true;
      else if (character === separator) { cells.push(cell); cell = ""; }
      else if (character === "\n") {
        cells.push(cell);
        if (cells.length > 1 || cell) yield { cells, read: seen / file.size };
        cells = []; cell = "";
      } else if (character !== "\r") cell += character;
    }
  }
  if (cell || cells.length) yield { cells: [...cells, cell], read: 1 };
}

/** Send files; `progress(name, share, documents)` is told after each request. */
export async function upload(files, { progress, signal }) {
  const total = { written: 0, unchanged: 0 };
  for (const file of files) {
    let lines = [], size = 0, last = 0, first = 1;
    const send = async () => {
      if (!lines.length) return;
      try {
        const kind = "application/x-ndjson";
        const added = await call("PUT", "/v1/documents", { body: `${lines.join("\n")}\n`, kind, signal });
        total.written += added.written;
        total.unchanged += added.unchanged;
      } catch (error) {
        total.written += error.details?.written ?? 0;
        error.message = `${file.name}, near line ${first + (error.details?.line ?? 1) - 1}: ${error.message}`;
        throw Object.assign(error, { total });
      }
      progress(file.name, last, total.written + total.unchanged);
      lines = []; size = 0;
    };
    progress(file.name, 0, total.written + total.unchanged);
    for await (const { line, read, at } of documents(file)) {
      if (!lines.length) first = at;
      lines.push(line);
      size += line.length;
      last = read;
      if (lines.length >= TOGETHER || size >= MOST) await send();
    }
    last = 1;
    await send();
  }
  return total;
}
