// What the page asks its server.

export async function api(path, body, signal) {
  const settings = body === undefined ? { signal } : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal };
  let answer;
  try {
    answer = await fetch(path, settings);
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Error("the server does not answer");
  }
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server says ${answer.status}`);
  const said = await answer.json();
  if (said && said.error) throw new Error(said.error);
  return said;
}
