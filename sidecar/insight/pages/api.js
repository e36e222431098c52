// Asks the server of this page: calls of the contract, and news of changes.

export class CallFailed extends Error {}

export async function call(method, params = {}) {
  let answer;
  try {
    answer = await fetch("/call", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ method, params }),
    });
  } catch {
    throw new CallFailed("The page's server has ended. Run `sidecar insight` again.");
  }
  if (!answer.ok) throw new CallFailed(`The server refused ${method} (${answer.status}).`);
  const { result, error } = await answer.json();
  if (error) throw new CallFailed(error.message);
  return result;
}

/** Calls `changed` after changes; listens only while the page is visible, since browsers limit connections. */
export function listen(changed, state) {
  let source = null;
  const update = () => {
    if (document.hidden) { source?.close(); source = null; return; }
    if (source) return;
    source = new EventSource("/events");
    source.addEventListener("changed", changed);
    source.onopen = () => state(true);
    source.onerror = () => state(false);
  };
  document.addEventListener("visibilitychange", () => { update(); if (!document.hidden) changed(); });
  update();
}
