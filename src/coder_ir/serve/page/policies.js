// The library's policies over a pool, so that moving a slider asks no server. A test holds this
// file against the library.

const rounded = (value) => Math.round(value * 1e12) / 1e12;
const shown = (value) => value.toFixed(3);

/** Positions by falling score; the pool comes sorted by id, which settles ties. */
function bestFirst(scores) {
  return scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a] || a - b);
}

/** Best passage of each of the n best documents of a space. */
function nearest(candidates, space, n) {
  const best = new Map();
  candidates.forEach((one, i) => {
    const known = best.get(one.doc_id);
    if (known === undefined || one[space] > candidates[known][space]) best.set(one.doc_id, i);
  });
  const found = [...best.values()];
  found.sort((a, b) => candidates[b][space] - candidates[a][space] || a - b);
  return found.slice(0, n);
}

/** The candidates that a policy would be given with this n. */
export function narrowed(pool, spaces, n) {
  const kept = new Set(spaces.flatMap((space) => nearest(pool.candidates, space, n)));
  const old = [...kept].sort((a, b) => a - b);
  const fresh = new Map(old.map((was, i) => [was, i]));
  const candidates = old.map((was) => {
    const one = pool.candidates[was];
    const doubles = one.near_duplicates.filter((i) => fresh.has(i)).map((i) => fresh.get(i));
    return { ...one, near_duplicates: doubles, position: was };
  });
  return { ...pool, candidates };
}

function by(space) {
  return ({ candidates }) => {
    const scores = candidates.map((one) => one[space]);
    const kept = bestFirst(scores).map((i) => ({ i, score: scores[i], why: "" }));
    return { kept, dropped: [] };
  };
}

function sequential({ candidates }, { alpha, tau }) {
  if (!candidates.some((one) => one.compatibility >= tau)) {
    const { kept } = by("topical")({ candidates });
    const why = `Nothing reaches compatibility ${tau}, so the topical order stands.`;
    return { kept: kept.map((verdict) => ({ ...verdict, why })), dropped: [] };
  }
  const scores = candidates.map((one) =>
    rounded(alpha * one.topical + (1 - alpha) * one.compatibility));
  const kept = [], dropped = [];
  for (const i of bestFirst(scores)) {
    const { topical, compatibility } = candidates[i];
    const passes = compatibility >= tau;
    const why = passes
      ? `${alpha} × topic ${shown(topical)} + ${rounded(1 - alpha)} × compatibility ${shown(compatibility)}`
      : `Filtered: compatibility ${shown(compatibility)} is below τ ${tau}`;
    (passes ? kept : dropped).push({ i, score: scores[i], why });
  }
  return { kept, dropped };
}

/** Linear between the two nearest values, as numpy does it. */
function quantile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = p * (sorted.length - 1);
  const low = sorted[Math.floor(place)], high = sorted[Math.ceil(place)];
  const part = place - Math.floor(place);
  return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

function ranks(scores) {
  const places = new Array(scores.length);
  bestFirst(scores).forEach((i, rank) => { places[i] = rank + 1; });
  return places;
}

function union({ candidates }, { alpha, p }) {
  if (!candidates.length) return { kept: [], dropped: [] };
  const topical = ranks(candidates.map((one) => one.topical));
  const compatible = ranks(candidates.map((one) => one.compatibility));
  const closeness = compatible.map((rank) => 1 / rank);
  const cut = quantile(closeness, p);
  const none = !closeness.some((value) => value >= cut);
  const scores = closeness.map((value, i) => rounded(alpha * (1 / topical[i]) + (1 - alpha) * value));
  const kept = [], dropped = [];
  for (const i of bestFirst(scores)) {
    const places = `number ${topical[i]} by topic, ${compatible[i]} by compatibility`;
    const passes = none || closeness[i] >= cut;
    const why = passes ? places : `Filtered: ${places} of ${candidates.length}`;
    (passes ? kept : dropped).push({ i, score: scores[i], why });
  }
  return { kept, dropped };
}

const UNSEEN = 10; // passages off the topic that every pool is taken to have

/** The topical score below which passages count as off the topic. */
function floorOf(topical) {
  const sorted = [...topical].sort((a, b) => a - b);
  const [low, high, middle] = [sorted[0], sorted.at(-1), sorted.length >> 1];
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return (UNSEEN * (2 * low - high) + sorted.length * median) / (UNSEEN + sorted.length);
}

/** Topical scores, lowered by what goes against the constraint. */
function lowered(candidates, constraint, share, s) {
  const topical = candidates.map((one) => one.topical);
  const weight = share * s.strength * (constraint.excluded.length ? 1 : s.unnamed);
  const wanted = candidates.map((one) => (1 - share) * one.topical + share * (one.topic ?? one.topical)
    + weight * one.compatibility - share * s.exclusion * (one.breach ?? 0));
  const [floor, most] = [floorOf(topical), Math.max(...wanted)];
  const gap = Math.max(Math.max(...topical) - floor, 1e-6);
  return topical.map((score, i) => {
    const lead = Math.max(score - floor, 0), { reading } = candidates[i];
    let left = lead * Math.exp((-s.firmness * (most - wanted[i])) / gap);
    if (reading) {
      left *= 1 - share * s.denial * reading.violates;
      left += share * s.affirmation * reading.satisfies * Math.sqrt(lead * gap);
    }
    return floor + left + Math.min(score - floor, 0);
  });
}

/** Positions that near-duplicates join, directly or over others. */
function groupsOf(candidates) {
  const group = candidates.map((_, i) => i);
  candidates.forEach((one, i) => one.near_duplicates.forEach((j) => {
    const [from, to] = [group[j], group[i]];
    group.forEach((number, at) => { if (number === from) group[at] = to; });
  }));
  const found = new Map();
  group.forEach((number, i) => found.set(number, [...(found.get(number) ?? []), i]));
  return [...found.values()].filter((positions) => positions.length > 1);
}

/** Topical scores; near-duplicates share their best one, less what each is behind. */
function toldApart(candidates, s) {
  const scores = candidates.map((one) => one.topical);
  const worth = ({ reading, compatibility }) =>
    compatibility + s.word * (reading.satisfies - reading.violates);
  for (const positions of groupsOf(candidates)) {
    const read = positions.filter((i) => candidates[i].reading);
    const level = Math.max(...read.map((i) => candidates[i].topical));
    const best = Math.max(...read.map((i) => worth(candidates[i])));
    for (const i of read) scores[i] = level - s.rivalry * (best - worth(candidates[i]));
  }
  return scores;
}

/** Finite for 0 and 1 too. */
function logOdds(probability) {
  return Math.log(Math.max(probability, 1e-9) / Math.max(1 - probability, 1e-9));
}

function auto({ candidates, constraint }, s) {
  const [least, most] = [logOdds(s.doubt), logOdds(s.sure)];
  const share = Math.min(1, Math.max(0, (logOdds(constraint.probability) - least) / (most - least)));
  const levels = share ? lowered(candidates, constraint, share, s) : toldApart(candidates, s);
  const scores = levels.map(rounded);
  const kept = bestFirst(scores).map((i) => {
    const one = candidates[i], score = shown(scores[i]);
    let why = `topic ${shown(one.topical)}`;
    if (share) why += `, now ${score} by compatibility ${shown(one.compatibility)}`;
    if (share && one.breach) why += `, ${shown(one.breach)} of what is ruled out`;
    if (share && one.reading) {
      const { satisfies, violates } = one.reading;
      why += `, read as satisfying ${satisfies.toFixed(2)}, violating ${violates.toFixed(2)}`;
    }
    if (!share && score !== shown(one.topical)) why += `, ${score} among near-duplicates`;
    return { i, score: scores[i], why };
  });
  return { kept, dropped: [] };
}

const ORDERS = {
  auto, seq: sequential, union, topical: by("topical"), compatibility: by("compatibility"),
};

/** What the risk limit drops joins what the policy dropped, all in the order of their scores. */
function decide({ kept, dropped }, candidates, maxRisk) {
  const risky = (verdict) => {
    const { risk } = candidates[verdict.i];
    return risk !== null && risk > maxRisk;
  };
  const late = kept.filter(risky).map((verdict) => {
    const risk = candidates[verdict.i].risk.toFixed(2);
    return { ...verdict, why: `Filtered: risk ${risk} is above ${maxRisk}` };
  });
  const gone = [...dropped, ...late].sort((a, b) => b.score - a.score || a.i - b.i);
  return { kept: kept.filter((verdict) => !risky(verdict)), dropped: gone };
}

/** Hits and filtered documents, each by its best passage. */
export function rank(pool, name, settings, { n, max_risk: maxRisk }) {
  const part = narrowed(pool, settings.spaces, n);
  if (!settings.uses_readings) {
    part.candidates = part.candidates.map((one) => ({ ...one, reading: null, risk: one.unread_risk }));
  }
  const order = decide(ORDERS[name](part, settings), part.candidates, maxRisk);
  const seen = new Set();
  const first = (verdicts) => verdicts.flatMap(({ i, score, why }) => {
    const one = part.candidates[i];
    if (seen.has(one.doc_id)) return [];
    seen.add(one.doc_id);
    return [{ ...one, score, why }];
  });
  const hits = first(order.kept).map((hit, i) => ({ ...hit, rank: i + 1 }));
  return { hits, filtered: first(order.dropped) };
}
