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

  /**
   * Answers as a project of so many services in five stages would make the API answer, with the open executions that are in
   * `moving`; and notes when the first row is there, and when all are.
   */
  test.large = (services) => {
    const stages = ["dev", "test", "staging", "prod-eu", "prod-us"];
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const cell = (n) => ({ stage: stages[n % 5], service: `service-${String(Math.floor(n / 5)).padStart(4, "0")}`, image: "registry.example/s:1.0",
      since, shkeptncontext: `c${n}`, last: { sequence: "delivery", result: "pass", shkeptncontext: `c${n}` }, coming: [] });
    test.moving = [];
    test.answer = (method, path, given) => {
      const size = Number(given.get("pageSize") ?? 20), from = Number(given.get("nextPageKey") ?? 0);
      if (path === "/v1/whoami") return undefined;
      if (path === "/v1/project") return { body: { projects: [{ projectName: "large", stages: stages.map((stageName) => ({ stageName })) }], nextPageKey: "0" } };
      if (path.endsWith("/environment")) {
        let all = Array.from({ length: services * 5 }, (_, n) => cell(n));
        if (given.has("service")) all = all.filter((c) => c.service === given.get("service") && (!given.has("stage") || c.stage === given.get("stage")));
        // `pageSize` counts services.
        const [begin, end] = [from * 5, (from + size) * 5];
        return { body: { items: all.slice(begin, end), nextPageKey: end < all.length ? String(from + size) : "0" } };
      }
      if (path === "/v1/sequence-execution") return { body: { sequenceExecutions: test.moving, nextPageKey: "0" } };
      return { body: { items: [], states: [], nextPageKey: "0" } };
    };
    const watch = new MutationObserver(() => {
      if (document.querySelector("main tbody th")) test.first ??= performance.now();
      if (!document.querySelector("main h2")?.textContent.includes(`${services} of ${services} services`)) return;
      test.complete = performance.now();
      watch.disconnect();
    });
    watch.observe(document, { childList: true, subtree: true, characterData: true });
  };
  /** What an execution in the second stage of a service moves, and how long it takes until it is seen, in milliseconds. */
  test.redraw = (n) => new Promise((done) => {
    const service = `service-${String(n).padStart(4, "0")}`;
    const task = `task-${n}-${test.requests.length}`;
    test.moving = [{ id: task, stage: "test", service, sequence: "delivery", state: "started", tasks: [], shkeptncontext: `c${n * 5 + 1}`,
      waits: { reason: "answer", task, since: new Date(Date.now()).toISOString() } }];
    const begin = performance.now();
    const watch = new MutationObserver(() => {
      if (!document.querySelector("main table").textContent.includes(task)) return;
      watch.disconnect();
      done(performance.now() - begin);
    });
    watch.observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
    dispatchEvent(new Event("changed"));
  });

  /** As if the reader looked at another tab. */
  test.hide = (hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (hidden ? "hidden" : "visible") });
    document.dispatchEvent(new Event("visibilitychange"));
  };

  const text = { type: "string" }, time = { type: "string", description: "RFC 3339" }, number = { type: "number" }, flag = { type: "boolean" };
  const list = (items) => ({ type: "array", items });
  const thing = (properties) => ({ type: "object", properties });
  const targets = list(thing({ criteria: text, targetValue: number, violated: flag }));
  /** `GET …/evaluation`. */
  const EVALUATIONS = thing({ nextPageKey: text, items: list(thing({
    id: text, project: text, stage: text, service: text, context: text, state: { type: "string", enum: ["finished", "finished", "waiting", "measuring", "asked"] },
    start: time, end: time, begun: time, finished: time, provider: text, status: { type: "string", enum: ["succeeded", "errored"] },
    result: { type: "string", enum: ["pass", "warning", "fail"] }, score: number, message: text, invalidated: flag, evaluated: { ...flag, enum: [true, true, false] },
    notes: list(text), comparedEvents: list(text), indicators: list(thing({
      score: number, displayName: text, keySli: flag, status: { type: "string", enum: ["pass", "warning", "fail", "info"] },
      value: thing({ metric: text, value: number, comparedValue: number, success: flag, message: text }), passTargets: targets, warningTargets: targets,
    })),
  })) });

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
      if (path.endsWith("/evaluation") && method === "GET") return { body: value("", EVALUATIONS, 0) };
      const known = paths.find(({ fits, item }) => fits.test(path) && item[method.toLowerCase()]);
      if (!known) return { status: 404, body: { title: "no such operation", detail: `${method} ${path}` } };
      const [status, answer] = Object.entries(known.item[method.toLowerCase()].responses).find(([code]) => code < "300") ?? ["204"];
      const [kind, content] = Object.entries(answer?.content ?? {})[0] ?? [];
      if (!kind || !/json/.test(kind)) return { status: Number(status), body: `# ${texts.join("\n# ")}\n` };
      return { status: Number(status), body: value("", content.schema ?? {}, 0) };
    };
  };
})();
