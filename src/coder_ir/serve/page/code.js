// The present settings as code that gives the same ranking.

const quoted = (text) => JSON.stringify(text);
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The body of POST /v1/search; defaults are left out. */
export function searchBody({ query, policy, settings, defaults, n, maxRisk, lists }, k) {
  const body = { query, k, policy };
  for (const name of ["alpha", "tau", "p"]) {
    if (name in settings && settings[name] !== defaults[name]) body[name] = settings[name];
  }
  if (n !== 100) body.n = n;
  if (maxRisk < 1) body.max_risk = maxRisk;
  for (const [name, values] of Object.entries(lists)) if (values.length) body[name] = values;
  return body;
}

export function asCurl(body, { origin, token }) {
  const auth = token ? ` \\\n  -H "authorization: Bearer $CODER_IR_READ_TOKEN"` : "";
  return `curl -s ${inShell(`${origin}/v1/search`)}${auth} \\\n  -H 'content-type: application/json' \\\n`
    + `  -d ${inShell(JSON.stringify(body))}\n`;
}

/** JSON as Python writes it; only texts, numbers and lists of texts come here. */
const asPythonValue = (value) => (Array.isArray(value) ? `[${value.map(quoted).join(", ")}]` : quoted(value));

export function asPython({ query, policy, alpha, tau, p, ...rest }, { origin, token }) {
  const given = Object.entries({ alpha, tau, p }).filter(([, value]) => value !== undefined);
  const kind = { seq: "Sequential", union: "Union" }[policy];
  const own = given.length
    ? `${kind}(${given.map(([name, value]) => `${name}=${value}`).join(", ")})`
    : quoted(policy);
  const options = [`policy=${own}`, ...Object.entries(rest).map(([name, value]) => `${name}=${asPythonValue(value)}`)];
  const lines = [
    ...(token ? ["import os", ""] : []),
    "from coder_ir import Client",
    ...(given.length ? [`from coder_ir.policies import ${kind}`] : []),
    "",
    `client = Client(${quoted(origin)}${token ? ', os.environ["CODER_IR_READ_TOKEN"]' : ""})`,
    `query = ${quoted(query)}`,
    `for hit in client.search(query, ${options.join(", ")}):`,
    "    print(hit.rank, hit.doc_id, hit.risk, hit.text)",
  ];
  return `${lines.join("\n")}\n`;
}
