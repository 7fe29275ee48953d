// Asking the server: one reply, the latest of many, or a stream of events.

const HEADERS = { "X-Resolvent": "1" };

async function answered(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Error(body.error ?? `the server answered ${response.status}`);
}

export async function ask(path, query) {
  const response = await fetch(`api/${path}?${query}`, { headers: HEADERS });
  return (await answered(response)).json();
}

// Ask for the latest query only: one request at a time, those overtaken while it runs are never sent. Replies
// hence come in order. With `drop`, a reply that has been overtaken is not shown either.
export function latest(path, show, fail, { wait = 0, drop = false } = {}) {
  let wanted = null;
  let busy = false;
  let timer = 0;

  async function run() {
    if (busy) return;
    busy = true;
    while (wanted !== null) {
      const [query, since] = wanted;
      wanted = null;
      try {
        const found = await ask(path, query);
        if (wanted === null || !drop) await show(found, query, since);
      } catch (error) {
        if (wanted === null) fail(error);
      }
    }
    busy = false;
  }

  return (query, since = performance.now()) => {
    wanted = [query, since];
    clearTimeout(timer);
    timer = wait ? setTimeout(run, wait) : (run(), 0);
  };
}

// Server-sent events of a POST, as [name, value]; the signal cancels, which ends the work on the server.
export async function* events(path, query, signal, body) {
  const response = await answered(
    await fetch(`api/${path}?${query}`, { method: "POST", headers: HEADERS, body, signal }),
  );
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const [name, data] = block.split("\n").map((line) => line.slice(line.indexOf(":") + 2));
      if (name === "failed") throw new Error(JSON.parse(data).error);
      yield [name, JSON.parse(data)];
    }
  }
}
