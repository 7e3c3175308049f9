// The API under /v1, as the page asks it. What is wrong is thrown as a Problem, with the server's own words.

export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

async function ask(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      credentials: 'same-origin',
      headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, 'unreachable', 'the server does not answer');
  }
  const text = await answer.text();
  let parsed = {};
  try {
    parsed = text === '' ? {} : JSON.parse(text);
  } catch { /* Not ours: a proxy's page. */ }
  if (!answer.ok) throw new Problem(answer.status, parsed.code ?? 'unknown', parsed.detail ?? `the server answered ${answer.status}`);
  return parsed;
}

export const get = (path, signal) => ask('GET', path, undefined, signal);
export const post = (path, body = {}, signal) => ask('POST', path, body, signal);
export const put = (path, body) => ask('PUT', path, body);
export const patch = (path, body) => ask('PATCH', path, body);
export const remove = (path) => ask('DELETE', path);

// A path with parameters; empty ones are left out.
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}
