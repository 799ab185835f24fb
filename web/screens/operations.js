// Operations: what could not be handled, webhooks, tokens, who did what, and how the installation is set up.

import { ago, command, cut, empty, failed, html, nothing, quoted, state } from "../lib/view.js";
import { act, chooser, choice, facts, filters, folded, follow, loading, pre, table } from "../lib/parts.js";
import { api, path } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { change, to } from "../lib/router.js";
import { left, moment, skew } from "../lib/time.js";
import { may } from "../lib/session.js";
import { oneLine, shortId } from "../lib/words.js";

const ACTIONS = ["apply", "trigger", "control", "decide", "override", "push", "claim", "observe", "delete", "token"];
const FILTERS = ["token", "action", "project", "fromTime", "beforeTime"];
const reads = () => may("read");
const administers = () => may("administer");
const field = (label, name, value = "", required = false) => html`<label>${label} <input name=${name} ?required=${required} .value=${value} autocomplete="off"></label>`;
const set = (name) => (event) => change({ [name]: event.currentTarget.value.trim() });
/** A time for an input, in the reader's zone. */
const local = (time) => (time ? new Date(Date.parse(time) - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "");
const time = (label, name, params) => html`<label>${label} <input type="datetime-local" .value=${local(params.get(name))}
  @change=${({ currentTarget: { value } }) => change({ [name]: value && new Date(value).toISOString() })}></label>`;

/** The only time that a secret is shown. */
const secret = ({ secret: text, token }) => ({ show: html`<p><strong>The secret of ${token.name} is shown only now: copy it.</strong></p>${pre("Secret", text)}` });

const create = () => act("Create a token", "", [
  html`It may do what its scopes say, such as <code>read</code>, <code>trigger</code>, <code>execute:test</code>, <code>approve:production</code>.`,
  field("Name", "name", "", true), field("Scopes", "scopes", "read", true), field("Projects (empty: all)", "projects"), field("Expires after (empty: never)", "expires", "90d"), field("Note", "note"),
], "keelway token create NAME --scope SCOPE[,SCOPE…]", async (_, key, { elements }) => {
  const body = Object.fromEntries(["name", "expires", "note"].map((name) => [name, elements[name].value.trim()]).filter(([, value]) => value));
  for (const name of ["scopes", "projects"]) body[name] = elements[name].value.split(/[\s,]+/).filter(Boolean);
  return secret(await api.post("/v1/tokens", body, key));
}, { kind: "primary" });

/** The deliveries of the webhook that is chosen. */
const deliveries = (all, [namespace, webhook]) => html`<h2>Deliveries of ${namespace}/${webhook}</h2>
  ${table("Deliveries", ["Began", "Event", "Status", "Last attempt", ""], all, (x) => x.id, (x) => {
    const last = x.attempts.at(-1);
    return [
      ago(x.began),
      html`${x.eventType}<div><a href=${to("delivery", namespace, x.keptnContext)}>${shortId(x.keptnContext)}</a></div>`,
      html`${state({ sign: { waiting: "waits", delivered: "pass" }[x.status] ?? "fail", what: x.status })}<div>${oneLine(x.message)}${x.nextAttempt ? `, next in ${left(x.nextAttempt)}` : ""}</div>`,
      last && html`${last.status} ${oneLine(last.error || last.answer, 200)} <span class="dim">${ago(last.at)} ago, ${last.ms} ms</span>`,
      may("trigger", namespace) ? act("Redeliver", x.eventType,
        `It is sent to ${webhook} again; one that waits is tried now.`, `keelway webhook redeliver ${quoted(x.id)} -p ${quoted(namespace)}`,
        (_, key) => api.post(path`/v1/deliveries/${namespace}/${x.id}/redeliver`, undefined, key)) : nothing,
    ];
  }, empty("Nothing was delivered yet."))}
  ${all.cut ? cut("Only the newest deliveries are shown: the command shows all.") : nothing}
  ${command(`keelway webhook deliveries -p ${quoted(namespace)} --webhook ${quoted(webhook)}`)}`;

/** The tabs: who may see one, what it reads, and how it is drawn. */
const TABS = {
  "dead-letters": {
    title: "Dead letters", sees: reads, path: "/v1/dead-letters", told: () => "keelway dead-letters list",
    none: ["No dead letters.", "Every message was handled."],
    heads: ["Sent", "Engine", "Why", "Next", ""],
    key: (x) => x.id,
    row: (x) => {
      const at = path`/v1/dead-letters/${x.id}`;
      const words = (what) => `keelway dead-letters ${what} ${quoted(x.id)}`;
      return [
        html`${ago(x.sentAt)} ago`, x.engine, html`${oneLine(x.reason, 300)} <span class="dim">tried ${x.receives} times</span>`,
        x.nextRedrive ? `sent again in ${left(x.nextRedrive)}` : state({ sign: "person", what: "waits for a person" }),
        html`<button class="small" @click=${async () => ask({ title: "Message", lines: [pre("Message", (await api.get(at)).body)], command: words("show") })}>Show</button>
          ${administers() ? html`${x.truncated ? nothing : act("Redrive", "this message", "It is sent again at once. The letter stays until it is handled.", words("redrive"), (_, key) => api.post(`${at}/redrive`, undefined, key))}
            ${act("Drop", "this message", "It is never handled.", words("drop"), (_, key) => api.delete(at, key), { danger: true })}` : nothing}`,
      ];
    },
  },
  invalid: {
    title: "Invalid input", sees: reads, path: "/v1/invalid", values: ["day"],
    told: (p) => `keelway get invalid${p.get("day") ? ` --day ${quoted(p.get("day"))}` : ""}`,
    none: ["No invalid input on this day.", "Choose another day above."],
    filters: (p) => html`<label>Day (UTC) <input type="date" .value=${p.get("day") ?? ""} @change=${set("day")}></label>`,
    heads: ["At", "Why", "Text"],
    key: (x) => x.at + x.text,
    row: (x) => [moment(x.at), oneLine(x.reason, 400), folded(oneLine(x.text, 60) || "Text", x.text + (x.truncated ? "…" : ""))],
  },
  webhooks: {
    title: "Webhooks", sees: () => true, path: "/v1/webhookSubscriptions", told: () => "keelway get webhooks -A",
    none: ["No webhook subscription.", html`<code>keelway apply -f FILE</code> with a manifest of kind <code>WebhookSubscription</code> makes one.`],
    heads: ["Webhook", "State", "Events", "To", ""],
    key: (x) => `${x.namespace}/${x.name}`,
    row: (x) => [
      html`<a href=${to("operations", "webhooks", { of: `${x.namespace}/${x.name}` })}>${x.namespace}/${x.name}</a>`,
      state(x.disabled ? { sign: "fail", what: `disabled (${x.disabled.reason}): ${oneLine(x.disabled.message)}` }
        : x.failingSince ? { sign: "warning", what: `failing since ${moment(x.failingSince)}` } : { sign: "pass", what: "enabled" }),
      (x.spec.events ?? []).map((type) => html`<div>${type}</div>`), oneLine(x.spec.url, 80),
      x.disabled && may("administer", x.namespace) ? act("Resume", x.name, "It takes events again, from now on.", `keelway webhook resume ${quoted(x.name)} -p ${quoted(x.namespace)}`,
        (_, key) => api.post(path`/v1/webhookSubscriptions/${x.namespace}/${x.name}/resume`, undefined, key)) : nothing,
    ],
  },
  tokens: {
    title: "Tokens", sees: administers, path: "/v1/tokens", told: () => "keelway token list -o wide",
    none: ["No tokens but the administrator's.", "One with fewer rights loses less when it is lost."],
    filters: create,
    heads: ["Token", "May", "In", "Made", "Expires", "Last used", ""],
    key: (x) => x.name,
    row: (x) => [
      html`${x.name}<div class="dim">${oneLine(x.note)}</div>`, x.scopes.join(", "), x.projects?.join(", ") || "all projects",
      html`${moment(x.created)}<div class="dim">by ${oneLine(x.by, 60)}${x.rotated ? `, rotated ${moment(x.rotated)}` : ""}${x.overlapUntil ? `, the secret before until ${moment(x.overlapUntil)}` : ""}</div>`,
      x.expired ? html`<span class="warn">⚠ expired</span>` : x.expires ? moment(x.expires) : "never", x.lastUsed ? moment(x.lastUsed) : "not yet",
      html`${act("Rotate", x.name, [
        "There is a new secret. The one before stays valid for the overlap: 0 for not at all, 7d at most.", field("Overlap", "overlap", "1h", true)], `keelway token rotate ${quoted(x.name)} --overlap 1h`,
        async (_, key, form) => secret(await api.post(path`/v1/tokens/${x.name}/rotate`, { overlap: form.elements.overlap.value }, key)))}
        ${act("Revoke", x.name, "Whoever uses it is refused within a minute, for good.", `keelway token revoke ${quoted(x.name)}`, (_, key) => api.delete(path`/v1/tokens/${x.name}`, key), { danger: true })}`,
    ],
  },
  audit: {
    title: "Audit", sees: administers, path: "/v1/audit", values: FILTERS,
    none: ["Nothing was done that fits.", html`<button @click=${() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>Show all</button>`],
    told: (p) => `keelway audit${[["by", "token"], ["action", "action"], ["project", "project"]].filter(([, n]) => p.get(n)).map(([flag, n]) => ` --${flag} ${quoted(p.get(n))}`).join("")} -o wide`,
    filters: (p, projects) => html`<label>Token <input type="search" .value=${p.get("token") ?? ""} @change=${set("token")}></label>
      ${choice("Action", "action", ACTIONS, p.get("action"))}
      ${chooser(projects, p.get("project"))} ${time("From", "fromTime", p)} ${time("Before", "beforeTime", p)}`,
    heads: ["At", "Who", "Action", "Project", "What", "Status"],
    key: (x) => x.at + x.id,
    row: (x) => [moment(x.at), html`${oneLine(x.by, 60)}<div class="dim">${x.by === x.token ? "" : `${x.token}, `}${x.address}</div>`, x.action, x.project,
      html`${oneLine(x.what || x.request, 200)}<div>${x.note ? `“${oneLine(x.note, 200)}”` : ""}</div>`, x.status],
  },
  limits: { title: "Limits", sees: reads, told: () => "keelway doctor" },
};

function limits({ rules, limits: l }) {
  const off = Math.round(skew() / 1000);
  return html`${facts({
    Clock: state(Math.abs(off) > 60 ? { sign: "warning", what: `differs from this computer's by ${off} s` } : { sign: "pass", what: "as this computer's" }),
    Rules: rules.map((r) => html`<div>${state({ sign: r.state === "enabled" ? "pass" : "fail", what: `${r.name} ${r.state}` })}</div>`),
    "Largest event": `${l.maxEventBytes} bytes`, "Executions of a context": `${l.maxExecutions} at most`,
    "A task is started within": l.startDeadline, "A task is finished within": l.taskTimeout, "History is kept": `${l.retentionDays} days`,
  })}`;
}

export function open({ parts, params }) {
  const seen = Object.entries(TABS).filter(([, tab]) => tab.sees());
  const name = parts[0] ?? seen[0][0];
  const tab = TABS[name];
  if (!tab?.sees()) {
    const error = { status: tab ? 403 : 404, title: "not shown", message: tab ? "This token may not see it." : `There is no ${name} here.` };
    return { title: () => "Operations", read: () => false, view: () => html`<h1>Operations</h1>${failed(error)}` };
  }
  const held = { params };
  let [items, sent, projects, checks] = [undefined, undefined, [], undefined];
  const pages = () => Number(held.params.get("pages")) || 1;
  const of = () => (name === "webhooks" && held.params.get("of")?.split("/")) || undefined;

  return {
    title: () => tab.title,
    routed: follow(held),
    async read(signal) {
      if (!tab.row) return (checks = await api.get("/v1/checks", { signal })) && false;
      if (name === "audit" && !projects.length) projects = await api.projects(signal);
      const values = Object.fromEntries((tab.values ?? []).map((value) => [value, held.params.get(value) ?? undefined]));
      items = await api.all(tab.path, values, { signal, most: pages() });
      const [namespace, webhook] = of() ?? [];
      sent = namespace && (await api.all("/v1/deliveries", { namespace, webhook }, { signal, most: 3 }));
      return false;
    },
    view: () => html`<h1>Operations</h1>
      <nav class="tabs" aria-label="Operations"><ul>${seen.map(([key, t]) => html`<li><a href=${to("operations", key)} aria-current=${key === name ? "page" : nothing}>${t.title}</a></li>`)}</ul></nav>
      ${tab.filters ? filters(tab.filters(held.params, projects)) : nothing}
      ${tab.row ? table(tab.title, tab.heads, items, tab.key, tab.row, empty(...tab.none)) : checks ? limits(checks) : loading}
      ${items?.cut ? html`<p><button @click=${() => change({ pages: String(pages() + 1) })}>Show more</button></p>` : nothing}
      ${sent ? deliveries(sent, of()) : nothing}
      ${command(tab.told(held.params))}`,
  };
}
