// Runs before the page's own files, in every document that a test opens: counts, and answers in place of the API if a test says so.
(() => {
  if (!location.protocol.startsWith("http")) return;
  const real = { fetch: window.fetch.bind(window), setTimeout: window.setTimeout.bind(window), clearTimeout: window.clearTimeout.bind(window) };
  const test = (window.keelwayTest = {
    /** What the page has asked of the API: `{at, method, path, key, body}`. */
    requests: [],
    violations: [],
    errors: [],
    dialogs: 0,
    /** `(method, path, parameters, body) => {status, body, headers, lost, after}`; `undefined`: the API answers. */
    answer: undefined,
  });
  const base = location.pathname.replace(/\/ui\/.*$/, "");
  const say = (thing) => String(thing?.stack ?? thing?.message ?? thing);
  addEventListener("error", (event) => test.errors.push(say(event.error ?? event.message)));
  addEventListener("unhandledrejection", (event) => test.errors.push(say(event.reason)));
  document.addEventListener("securitypolicyviolation", (event) => test.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
  for (const name of ["alert", "confirm", "prompt"]) window[name] = () => void (test.dialogs += 1);

  let running = 0;
  window.fetch = async (input, options = {}) => {
    const url = new URL(input, location.href);
    const [method, path] = [options.method ?? "GET", decodeURI(url.pathname.slice(base.length))];
    const asked = path.startsWith("/v1/") && url.origin === location.origin;
    if (asked) test.requests.push({ at: Date.now(), method, path: path + url.search, key: options.headers?.["idempotency-key"], body: options.body });
    const given = asked ? test.answer?.(method, url.pathname.slice(base.length), url.searchParams, options.body) : undefined;
    if (given === undefined) {
      running += 1;
      try {
        const answer = await real.fetch(input, options);
        const body = await answer.arrayBuffer();
        return new Response([204, 304].includes(answer.status) ? null : body, { status: answer.status, headers: answer.headers });
      } finally {
        running -= 1;
      }
    }
    const { status = 200, body = {}, headers = {}, lost = false, after = 0 } = given;
    const aborted = () => options.signal?.reason ?? new DOMException("aborted", "AbortError");
    if (after) {
      await new Promise((go, stop) => {
        setTimeout(go, after);
        options.signal?.addEventListener("abort", () => stop(aborted()));
      });
    }
    if (options.signal?.aborted) throw aborted();
    if (lost) throw new TypeError("Failed to fetch");
    const text = typeof body === "string";
    const now = new Date(Date.now()).toISOString();
    return new Response(text ? body : JSON.stringify({ now, ...body }), { status, headers: { "content-type": text ? "application/yaml" : "application/json", ...headers } });
  };

  /** Stops the clock: time passes only in `advance`. */
  test.stop = (time = Date.now()) => {
    let [now, last] = [time, 0];
    const timers = new Map();
    Date.now = () => now;
    const later = (due, every, work, values) => (timers.set((last -= 1), { due, every, work, values }), last);
    // What is due at once is not for the clock: it only lets others go first.
    window.setTimeout = (work, ms = 0, ...values) => (ms < 20 ? real.setTimeout(work, ms, ...values) : later(now + ms, 0, work, values));
    window.setInterval = (work, ms, ...values) => later(now + ms, ms, work, values);
    window.clearTimeout = window.clearInterval = (id) => (id < 0 ? timers.delete(id) : real.clearTimeout(id));
    /** Lets time pass. What is due happens in order, and what it asks of the API is answered before time goes on. */
    test.advance = async (ms) => {
      await test.settled();
      for (const end = now + ms; ; ) {
        const [id, timer] = [...timers].filter(([, t]) => t.due <= end).sort(([, a], [, b]) => a.due - b.due)[0] ?? [];
        if (!timer) return void (now = end);
        now = Math.max(now, timer.due);
        timer.every ? (timer.due += timer.every) : timers.delete(id);
        timer.work(...timer.values);
        await test.settled();
      }
    };
  };
  /** When everything that was asked is answered. */
  test.settled = async () => {
    for (let calm = 0; calm < 4; calm = running ? 0 : calm + 1) await new Promise((go) => real.setTimeout(go, 0));
  };

  /** As if the reader looked at another tab. */
  test.hide = (hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (hidden ? "hidden" : "visible") });
    document.dispatchEvent(new Event("visibilitychange"));
  };

  const DATE = /(^time|^at|At|since|until|Since|Until|^next|^created|^applied|^expires|^rotated|^lastUsed|^began|^deadline|Opening)$/;

  /**
   * Answers everything as the API's own document describes it: each member is there, each list has some entries, and each text is
   * one of `texts`. What has a fixed set of words has one of these. `most` is how many entries a list has.
   */
  test.world = (api, { texts, most = 3 }) => {
    const start = Date.now();
    const paths = Object.entries(api.paths).map(([path, item]) => {
      const parts = path.split("/").map((part) => (part.startsWith("{") ? "[^/]+" : part.replace(/[.]/g, "\\.")));
      return { item, exact: path.split("{").length, fits: new RegExp(`^${parts.join("/")}$`) };
    }).sort((a, b) => a.exact - b.exact);
    let count = 0;
    const pick = (list) => list[(count += 1) % list.length];
    // Lists of these have no entry twice.
    const turns = {};
    const turn = (name, list) => list[(turns[name] = (turns[name] ?? -1) + 1) % list.length];
    const names = { projectName: 0, project: 0, namespace: 0, stageName: 1, stage: 1, serviceName: 2, service: 2 };
    const string = (name, schema) => {
      const words = [...(schema.description ?? "").matchAll(/`([A-Za-z][A-Za-z-]*)`/g)].map((found) => found[1]);
      if (name === "now") return new Date(Date.now()).toISOString();
      if (schema.enum) return pick(schema.enum);
      if (name === "nextPageKey") return "0";
      if (name === "creationDate") return "1700000000000000000";
      if (DATE.test(name) || /RFC 3339/.test(schema.description ?? "")) return new Date(start - 1000 * (count += 7)).toISOString();
      if (words.length > 1) return pick(words);
      if (name in names) return turn(name, [0, 1, 2].map((i) => texts[(names[name] + i) % texts.length]));
      if (/^(id|uid|shkeptncontext|keptnContext|triggerId)$/.test(name)) return `${(count += 1)}-${texts[0]}`;
      return pick(texts);
    };
    const value = (name, schema, depth) => {
      if (schema.$ref) {
        const kind = schema.$ref.split("/").pop();
        const made = value(name, { ...api.components.schemas[kind] }, depth);
        return kind === "ExecutionState" ? execution(made) : made;
      }
      const choice = (schema.anyOf ?? schema.oneOf)?.filter((one) => one.type !== "null");
      if (choice) return value(name, pick(choice), depth);
      if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => value(name, one, depth)));
      const type = [schema.type].flat().find((one) => one !== "null");
      if (type === "array") return depth > 7 ? [] : Array.from({ length: depth > 2 ? Math.min(2, most) : most }, () => value(name, schema.items ?? {}, depth + 1));
      if (type === "string") return string(name, schema);
      if (type === "integer" || type === "number") return name === "nextPageKey" ? 0 : pick([1, 2, 3, 50]);
      if (type === "boolean") return pick([true, false, false]);
      if (name === "events") return event();
      if (schema.properties) return Object.fromEntries(Object.entries(schema.properties).map(([key, one]) => [key, value(key, one, depth + 1)]));
      return type === "object" ? { [texts[0]]: pick(texts) } : pick(texts);
    };
    // Events are as their senders made them: the document does not describe them.
    const event = () => ({
      id: `${(count += 1)}`, source: pick(texts), type: `sh.keptn.event.${texts[0]}.finished`, time: string("time", {}), shkeptncontext: pick(texts),
      data: { stage: pick(texts), result: pick(["pass", "fail"]), message: pick(texts), logUrl: pick(texts) },
    });
    let executions = 0;
    const execution = (x) => {
      if ((executions += 1) % 2) return { ...x, state: "started", result: undefined, status: undefined, finishedAt: undefined, retriedBy: undefined };
      return { ...x, waits: undefined };
    };
    test.answer = (method, path) => {
      if (path === "/v1/whoami") return undefined;
      const known = paths.find(({ fits, item }) => fits.test(path) && item[method.toLowerCase()]);
      if (!known) return { status: 404, body: { title: "no such operation", detail: `${method} ${path}` } };
      const [status, answer] = Object.entries(known.item[method.toLowerCase()].responses).find(([code]) => code < "300") ?? ["204"];
      const [kind, content] = Object.entries(answer?.content ?? {})[0] ?? [];
      if (!kind || !/json/.test(kind)) return { status: Number(status), body: `# ${texts.join("\n# ")}\n` };
      return { status: Number(status), body: value("", content.schema ?? {}, 0) };
    };
  };
})();
