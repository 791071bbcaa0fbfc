// Calls to the server that the page came from, and to no other.

const TOKEN = "coder-ir token";

export class Refused extends Error {
  constructor(error, status) {
    super(error.message ?? `the server answered ${status}`);
    this.advice = error.advice ?? "";
    this.details = error.details;
    this.status = status;
  }
}

export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));

function headers(kind) {
  const token = sessionStorage.getItem(TOKEN);
  return { "content-type": kind, ...(token ? { authorization: `Bearer ${token}` } : {}) };
}

/** The JSON of an answer; asks for a token where the server wants one, then tries again. */
export async function call(method, path, { body, kind = "application/json", signal } = {}) {
  const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, body: sent, headers: headers(kind), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused({ message: "no answer from the server", advice: "Check that it runs." }, 0);
  }
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const lacksRight = answer.status === 401 || (answer.status === 403 && hasToken());
  if (lacksRight && (await askForToken(told.error?.message))) {
    return call(method, path, { body, kind, signal });
  }
  throw new Refused(told.error ?? {}, answer.status);
}

function askForToken(words) {
  const dialog = document.getElementById("ask");
  const field = document.getElementById("token");
  document.getElementById("ask-words").textContent = words ?? "This server asks for a token.";
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      const given = dialog.returnValue === "ok" && field.value.trim();
      if (given) sessionStorage.setItem(TOKEN, field.value.trim());
      resolve(Boolean(given));
    };
  });
}
