// The latency page: takes finished requests from the server every two seconds
// and draws what the filters leave.
import { blank, columns, scatter, strip, waterfall } from "./charts.js";
import { binOf, cohorts, fit, histogram, overTime, percentile, sorted, stageMeans, stageMS, stages } from "./stats.js";
import { words } from "./text.js";

const maxRows = 10000; // as many as the server keeps
const maxDots = 1500; // drawn in a scatter; the line is fitted through all
const bins = 36; // of a tile's distribution
const fewest = 8; // values that make a distribution worth drawing
const pollMS = 2000;

const $ = (id) => document.getElementById(id);
const el = (tag, attrs = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== null));
  return e;
};

// fill replaces what is in a host; null children are left out.
const fill = (host, ...children) => host.replaceChildren(...children.filter((c) => c !== null));

const state = {
  rows: [], started: "", last: 0, active: 0, content: false, shown: 25,
  paused: false, lost: false, waiting: null,
  chosen: null, // request or trace id; null follows the newest
  hover: { last: -1, time: -1, ttft: -1, total: -1 },
  mode: { last: "ms", time: "ms", ttftX: "prefilled", ttftY: "engine" },
};

// Words and numbers.

let lang = localStorage.getItem("ragd.lang") ?? document.documentElement.lang;
if (!(lang in words)) lang = "en";
const t = (key) => words[lang][key];
const stageName = (s) => t("stages")[s] ?? s;
const number = (v, digits = 0) => v.toLocaleString(lang, { maximumFractionDigits: digits });
// money keeps nine places, those of the ledger; sums of many are shown to three figures.
const money = (v, currency, digits = 3) => `${v.toLocaleString(lang, digits ? { maximumSignificantDigits: digits } : { maximumFractionDigits: 9 })} ${currency}`;
const exact = (ms) => `${number(ms, 3)} ms`;
const clock = (at, seconds = true) =>
  new Date(at).toLocaleTimeString(lang, { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }), hourCycle: "h23" });

function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${number(ms, 2)} ms`;
  if (ms < 10) return `${number(ms, 1)} ms`;
  if (ms < 1000) return `${number(ms)} ms`;
  return `${number(ms / 1000, ms < 10000 ? 2 : 1)} s`;
}

function translate() {
  document.documentElement.lang = lang;
  document.title = `ragd · ${t("title")}`;
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = t(e.dataset.t);
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", t(e.dataset.label));
  $("lang").textContent = t("other_lang");
  $("lang").lang = lang === "ko" ? "en" : "ko";
  $("pause").textContent = t(state.paused ? "resume" : "pause");
  segments();
}

// Data.

async function poll() {
  clearTimeout(state.waiting);
  if (state.paused || document.hidden) return;
  let pause = pollMS;
  try {
    if (await fetchOnce()) pause = 0;
    state.lost = false;
  } catch (e) {
    if (e.message === "key") return askForKey(e.why);
    state.lost = true;
  }
  status();
  clearTimeout(state.waiting);
  state.waiting = setTimeout(poll, pause);
}

// fetchOnce takes what is new and says whether more is waiting.
async function fetchOnce() {
  const key = sessionStorage.getItem("ragd.key");
  const response = await fetch(`latency/data?since=${state.last}`, { headers: key ? { Authorization: `Bearer ${key}` } : {}, cache: "no-store" });
  if (response.status in refusals) throw Object.assign(new Error("key"), { why: refusals[response.status] });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const data = await response.json();
  $("key-form").hidden = true;
  if (state.started !== data.started) {
    const restarted = state.started !== "";
    Object.assign(state, { started: data.started, rows: [], last: 0 });
    if (restarted) return true; // the process is another one: from its beginning
  }
  Object.assign(state, { active: data.active, content: data.content });
  if (data.records.length || !state.drawn) {
    state.rows = state.rows.concat(data.records).slice(-maxRows);
    state.last = state.rows.at(-1)?.seq ?? 0;
    if (!data.more) schedule();
  }
  return data.more;
}

// refusals say, by status, why a key was not taken.
const refusals = { 401: "keyWrong", 403: "keyRole" };

function askForKey(why) {
  state.drawn = false;
  $("key-form").hidden = false;
  $("main").hidden = $("empty").hidden = true;
  if (sessionStorage.getItem("ragd.key")) $("key-form").querySelector("p").textContent = t(why);
  $("key").focus();
}

function status() {
  const text = state.paused ? t("paused") : state.lost ? t("lost") : state.active ? t("running")(state.active) : t("live");
  if ($("live").textContent !== text) $("live").textContent = text;
  $("live").className = `live${state.paused || state.lost ? " off" : state.active ? " busy" : ""}`;
}

// inWindow are the rows of the window, route and search; matching also of the
// outcome.
function inWindow() {
  const seconds = Number($("window").value), route = $("route").value, needle = $("search").value.trim().toLowerCase();
  const from = seconds ? Date.now() - seconds * 1000 : 0;
  return state.rows.filter((r) =>
    (!from || Date.parse(r.received) >= from) && (!route || r.route === route) &&
    (!needle || r.trace_id.includes(needle) || r.id.toLowerCase().includes(needle)));
}

const completed = (r) => r.outcome === "answered" || r.outcome === "refused";

function matching(rows) {
  const want = $("outcome").value;
  return want === "all" ? rows : rows.filter((r) => completed(r) === (want === "completed"));
}

function routes() {
  const select = $("route"), have = [...new Set(state.rows.map((r) => r.route))].sort();
  const want = ["", ...have];
  if ([...select.options].map((o) => o.value).join("\n") === want.join("\n") && select.options[0]?.textContent === t("all")) return;
  const chosen = select.options.length > 1 ? select.value : have.includes("POST /ask") ? "POST /ask" : "";
  select.replaceChildren(...want.map((r) => el("option", { value: r }, r || t("all"))));
  select.value = want.includes(chosen) ? chosen : "";
}

// Drawing. Everything is drawn anew from the state, at most once a frame.

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; draw(); });
}

let view = []; // the rows that the filters leave, oldest first

function draw() {
  if (!$("key-form").hidden) return; // there is nothing to see without a key
  state.drawn = true;
  status();
  routes();
  const windowed = inWindow();
  view = matching(windowed);
  $("main").hidden = windowed.length === 0;
  $("empty").hidden = view.length > 0;
  $("empty").textContent = t(state.rows.length ? "emptyFilter" : "emptyNone");
  if (!windowed.length) return;
  tiles(windowed);
  for (const part of [last, one, time, slow, inputs, outputs, table]) part();
}

function tiles(windowed) {
  const tile = (name, sub, values) => {
    const s = sorted(values), p = (q) => percentile(s, q), p95 = p(95);
    return el("div", { class: "card tile" }, el("h2", {}, name), el("p", { class: "sub" }, sub),
      el("p", { class: "big" }, duration(p(50)), el("small", {}, "p50")),
      el("p", { class: "rest" }, el("span", {}, el("b", {}, duration(p95)), " p95"), el("span", {}, el("b", {}, duration(p(99))), " p99")),
      s.length >= fewest ? strip(histogram(s, bins), binOf(p95, s, bins)) : null);
  };
  const sum = (f) => windowed.reduce((a, r) => a + f(r), 0), bad = windowed.filter((r) => !completed(r)).length;
  const input = sum((r) => r.input_tokens);
  const fact = (value, name) => el("span", {}, el("b", {}, value), ` ${name}`);
  $("tiles").replaceChildren(
    tile(t("ttft"), t("ttftSub"), view.map((r) => r.timings.ttft_ms)),
    tile(t("tpot"), t("tpotSub"), view.map((r) => r.timings.tpot_ms)),
    tile(t("total"), t("totalSub"), view.map((r) => r.timings.total_ms)),
    el("div", { class: "card tile" }, el("h2", {}, t("requests")), el("p", { class: "sub" }, t("requestsSub")),
      el("p", { class: "big" }, number(windowed.length)),
      el("p", { class: "rest facts-list" }, fact(`${number((bad / windowed.length) * 100, 1)} %`, t("reqErrors")), fact(number(input), t("reqIn")),
        fact(number(sum((r) => r.output_tokens)), t("reqOut")), fact(`${number(input ? (sum((r) => r.cached_tokens) / input) * 100 : 0)} %`, t("reqCached")),
        ...costs(windowed).map(([currency, v]) => fact(money(v, currency), t("reqCost"))))));
}

// costs sums up what the requests cost, by currency; requests without a price have none.
function costs(rows) {
  const sums = new Map();
  for (const { cost } of rows) if (cost) sums.set(cost.currency, (sums.get(cost.currency) ?? 0) + cost.total);
  return [...sums];
}

const partsOf = (r) => Object.fromEntries(stages.map((s) => [s, stageMS(r, s)]));

// legend names the stages with their values in parts.
function legend(host, parts, share) {
  const total = stages.reduce((a, s) => a + parts[s], 0) || 1;
  host.replaceChildren(...stages.map((s) => el("span", { class: "item" }, el("i", { class: `swatch s-${s}` }), stageName(s),
    el("b", {}, share ? `${number((parts[s] / total) * 100, 1)} %` : duration(parts[s])))));
}

function describe(r) {
  return `${clock(r.received)} · ${t("outcomes")[r.outcome] ?? r.outcome} · ${duration(r.timings.total_ms)} · ${t("tokensInOut")(number(r.input_tokens), number(r.output_tokens))} · ${r.trace_id.slice(0, 8)}`;
}

const room = (host, each, most) => Math.max(12, Math.min(most, Math.floor((host.clientWidth - 64) / each)));
const hoverOn = (name, again) => (i) => { if (state.hover[name] !== i) { state.hover[name] = i; again(); } };

function last() {
  const host = $("last"), rows = view.slice(-room(host, 11, 100)), share = state.mode.last === "share", hover = state.hover.last, now = current();
  columns(host, {
    label: `${t("lastRequests")}. ${t("lastRequestsSub")}`, keys: stages, share, format: duration, hover, height: 230,
    cols: rows.map((r) => ({ parts: partsOf(r), label: clock(r.received), chosen: r === now })),
    onHover: hoverOn("last", last), onOpen: (i) => choose(rows[i]),
  });
  const r = rows[hover];
  legend($("last-legend"), r ? partsOf(r) : stageMeans(rows), share);
  $("last-note").textContent = r ? describe(r) : t("meanOf")(number(rows.length));
}

function time() {
  const host = $("time"), { step, buckets } = overTime(view, room(host, 13, 60)), share = state.mode.time === "share", hover = state.hover.time;
  columns(host, {
    label: `${t("attribution")}. ${t("attributionSub")}`, keys: stages, share, format: duration, hover, height: 300,
    cols: buckets.map((b) => ({ parts: stageMeans(b.rows), label: clock(b.at * 1000, step < 60) })),
    onHover: hoverOn("time", time),
  });
  const b = buckets[hover];
  legend($("time-legend"), stageMeans(b ? b.rows : view), share);
  $("time-note").textContent = (b ? `${clock(b.at * 1000)} · ` : "") + (b && !b.rows.length ? t("noRequests") : t("meanOf")(number(b ? b.rows.length : view.length)));
}

// stackedRow is one horizontal bar of {class, value, title} as wide as its share of max.
function stackedRow(parts, max) {
  const bar = el("div", { class: "bar" });
  for (const p of parts) {
    if (!(p.value > 0)) continue;
    const e = el("i", { class: p.class, title: p.title });
    e.style.width = `${(p.value / (max || 1)) * 100}%`;
    bar.append(e);
  }
  return bar;
}

function slow() {
  const c = cohorts(view), host = $("cohorts");
  if (!view.length) return host.replaceChildren();
  const a = stageMeans(c.slow), b = stageMeans(c.typical), sum = (m) => stages.reduce((x, s) => x + m[s], 0), max = Math.max(sum(a), sum(b));
  const bar = (m) => stackedRow(stages.map((s) => ({ class: `s-${s}`, value: m[s], title: `${stageName(s)} ${exact(m[s])}` })), max);
  const most = stages.reduce((x, s) => (a[s] - b[s] > a[x] - b[x] ? s : x));
  const delta = (d) => (Math.abs(d) < 0.005 ? duration(0) : `${d > 0 ? "+" : "−"}${duration(Math.abs(d))}`);
  fill(host,
    el("p", { class: "bar-name" }, `${t("slow")} ≥ p95 (${duration(c.p95)}) · ${number(c.slow.length)}`), bar(a),
    el("p", { class: "bar-name" }, `${t("typical")} ≤ p50 (${duration(c.p50)}) · ${number(c.typical.length)}`), bar(b),
    el("table", { class: "small" }, el("thead", {}, el("tr", {}, ...["stage", "slow", "typical", "difference"].map((k) => el("th", { scope: "col" }, t(k))))),
      el("tbody", {}, ...stages.map((s) => el("tr", { class: s === most ? "most" : "" }, el("th", { scope: "row" }, el("i", { class: `swatch s-${s}` }), stageName(s)),
        el("td", {}, duration(a[s])), el("td", {}, duration(b[s])), el("td", {}, delta(a[s] - b[s])))))),
    c.slow.length && a[most] > b[most] ? el("p", { class: "note" }, t("mostOf")(stageName(most), delta(a[most] - b[most]))) : null);
}

// cloud draws one scatter with its line.
function cloud(name, label, rows, x, y, again) {
  const points = rows.map((r) => ({ x: x(r), y: y(r), row: r })).filter((p) => p.y !== null && p.x > 0);
  const line = fit(points), now = current();
  const shown = points.slice(-maxDots).map((p) => ({ ...p, hollow: p.row.cached_tokens > 0, chosen: p.row === now })).sort((a, b) => a.x - b.x);
  $(`${name}-fit`).textContent = line
    ? t("fitText")({ slope: number(line.slope, 3), intercept: duration(Math.abs(line.intercept)).replace(/^/, line.intercept < 0 ? "−" : ""), r2: number(line.r2, 2), n: number(line.n) })
    : t("noFit");
  if (!shown.length) {
    $(`${name}-fit`).textContent = $(`${name}-note`).textContent = "";
    return blank($(name), t("noPoints"));
  }
  const hover = Math.min(state.hover[name], shown.length - 1);
  scatter($(name), {
    label, points: shown, line, formatX: (v) => number(v), formatY: duration, hover,
    onHover: hoverOn(name, again), onOpen: (i) => choose(shown[i].row),
  });
  $(`${name}-note`).textContent = shown[hover] ? describe(shown[hover].row) : shown.some((p) => p.hollow) ? t("hollow") : "";
}

function inputs() {
  const { ttftX, ttftY } = state.mode;
  cloud("ttft", t("inputTTFT"), view, (r) => r.input_tokens - (ttftX === "prefilled" ? r.cached_tokens : 0),
    (r) => (ttftY === "engine" ? r.timings.llm_ttft_ms : r.timings.ttft_ms), inputs);
}

function outputs() {
  cloud("total", t("outputTotal"), view, (r) => r.output_tokens, (r) => r.timings.total_ms, outputs);
}

// One request.

// A caller's own trace may hold several requests, so a request is chosen by its id;
// an address with a trace id opens the first of that trace.
const current = () => (state.chosen && state.rows.find((r) => r.id === state.chosen || r.trace_id === state.chosen)) || view.at(-1);

function choose(r) {
  state.chosen = r?.id ?? null;
  history.replaceState(null, "", r ? `#${r.id}` : location.pathname);
  schedule();
}

function one() {
  const r = current();
  $("one").hidden = !r;
  if (!r) return;
  $("follow").hidden = !state.chosen;
  const fact = (name, value, wide) => (value === "" || value === null ? null : el("div", wide ? { class: "wide" } : {}, el("dt", {}, name), el("dd", {}, value)));
  fill($("facts"),
    fact(t("time"), clock(r.received)), fact(t("outcome"), el("span", { class: `badge o-${r.outcome}` }, t("outcomes")[r.outcome] ?? r.outcome)),
    fact(t("error"), r.error ?? ""), fact("TTFT", duration(r.timings.ttft_ms)), fact("TPOT", duration(r.timings.tpot_ms)), fact(t("total"), duration(r.timings.total_ms)),
    fact(t("kind"), r.answer_kind), fact(t("finish"), r.finish_reason), fact(t("model"), r.model), fact(t("collection"), r.collection),
    fact(t("chunks"), `${r.used_chunks} / ${r.retrieved_chunks}`), fact(t("trace"), el("code", {}, r.trace_id), true), fact(t("id"), el("code", {}, r.id), true));
  $("question").textContent = r.question ?? (state.content ? "" : t("noContent"));
  $("question").classList.toggle("muted", !r.question);
  drawWaterfall(r);
  drawPrompt(r);
}

const inner = new Set(["rewrite", "embed", "dense", "lexical", "fuse"]);

function drawWaterfall(r) {
  if (!r.intervals.length) return blank($("waterfall"), t("noStage"));
  const rows = [...r.intervals].sort((a, b) => a.start_ms - b.start_ms || inner.has(a.stage) - inner.has(b.stage))
    .map((i) => ({ name: stageName(i.stage), stage: inner.has(i.stage) ? "retrieval" : i.stage, start: i.start_ms, length: i.ms, inner: inner.has(i.stage) }));
  waterfall($("waterfall"), {
    label: `${t("waterfall")}: ${rows.map((x) => `${x.name} ${exact(x.length)}`).join(", ")}; ${stageName("other")} ${exact(r.timings.other_ms)}; ${t("total")} ${exact(r.timings.total_ms)}`,
    rows, total: r.timings.total_ms, format: duration,
    marks: r.timings.ttft_ms === null ? [] : [{ at: r.timings.ttft_ms, text: `TTFT ${duration(r.timings.ttft_ms)}` }],
  });
}

function drawPrompt(r) {
  const p = r.prompt, name = t("parts");
  const parts = [
    ...["template", "system", "history", "tools"].map((k) => ({ key: k, name: name[k], value: p[k] })),
    ...(p.evidence ?? []).map((n, i) => ({ key: "evidence", name: t("evidenceN")(i + 1), value: n })),
    { key: "question", name: name.question, value: p.question },
  ].filter((x) => x.value > 0);
  const dropped = r.dropped ?? [];
  fill($("prompt"),
    el("p", { class: "note first" }, r.input_tokens ? t("promptOf")(number(r.input_tokens), r.cached_tokens ? number(r.cached_tokens) : "") : t("noPrompt")),
    r.cost ? el("p", { class: "note first" }, t("costOf")(money(r.cost.total, r.cost.currency, 0), money(r.cost.input, "", 0).trim(), money(r.cost.cached_input, "", 0).trim(), money(r.cost.output, "", 0).trim())) : null,
    stackedRow(parts.map((x) => ({ class: `p-${x.key}`, value: x.value, title: `${x.name} ${number(x.value)}` })), r.input_tokens),
    el("table", { class: "small" }, el("tbody", {}, ...parts.map((x) => el("tr", {}, el("th", { scope: "row" }, el("i", { class: `swatch p-${x.key}` }), x.name),
      el("td", {}, number(x.value)), el("td", { class: "muted" }, `${number((x.value / r.input_tokens) * 100, 1)} %`))))),
    dropped.length ? el("h4", {}, t("left_out")) : null,
    dropped.length ? el("table", { class: "small" }, el("tbody", {}, ...dropped.map((d) => el("tr", {}, el("th", { scope: "row" }, t("reasons")[d.reason] ?? d.reason),
      el("td", {}, t("nChunks")(number(d.chunks))), el("td", {}, t("nTokens")(number(d.tokens))))))) : null);
}

function table() {
  const rows = view.slice(-state.shown).reverse(), now = current(), focused = document.activeElement?.dataset?.id;
  const head = [["time"], ["outcome"], ["TTFT"], ["TPOT", "wide-only"], ["total"], ["in", "medium-only"], ["out", "medium-only"], ["cached", "wide-only"], ["chunks", "wide-only"], ["trace"]];
  const cell = (value, cls = "") => el("td", { class: cls }, value);
  $("table").replaceChildren(
    el("thead", {}, el("tr", {}, ...head.map(([k, cls]) => el("th", { scope: "col", class: cls ?? "" }, t(k) ?? k)))),
    el("tbody", {}, ...rows.map((r) => {
      const open = el("button", { type: "button", class: "link", "data-id": r.id }, r.trace_id.slice(0, 8));
      const row = el("tr", r === now ? { "aria-current": "true" } : {}, cell(clock(r.received)), cell(el("span", { class: `badge o-${r.outcome}` }, t("outcomes")[r.outcome] ?? r.outcome)),
        cell(duration(r.timings.ttft_ms)), cell(duration(r.timings.tpot_ms), "wide-only"), cell(duration(r.timings.total_ms)), cell(number(r.input_tokens), "medium-only"),
        cell(number(r.output_tokens), "medium-only"), cell(number(r.cached_tokens), "wide-only"), cell(`${r.used_chunks} / ${r.retrieved_chunks}`, "wide-only"), cell(open));
      row.addEventListener("click", () => { choose(r); $("one").scrollIntoView({ block: "nearest" }); });
      return row;
    })));
  if (focused) $("table").querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  $("more").hidden = view.length <= state.shown;
}

// Controls.

function segments() {
  const make = (id, key, choices, again) => $(id).replaceChildren(...choices.map(([value, text, hint]) => {
    const b = el("button", { type: "button", "aria-pressed": String(state.mode[key] === value), ...(hint && { title: t(hint) }) }, t(text));
    b.addEventListener("click", () => { state.mode[key] = value; segments(); again(); $(id).querySelector('[aria-pressed="true"]').focus(); });
    return b;
  }));
  make("last-mode", "last", [["ms", "ms"], ["share", "share"]], last);
  make("time-mode", "time", [["ms", "ms"], ["share", "share"]], time);
  make("ttft-x", "ttftX", [["input", "xInput", "xInputHint"], ["prefilled", "xPrefilled", "xPrefilledHint"]], inputs);
  make("ttft-y", "ttftY", [["request", "yTTFT", "yTTFTHint"], ["engine", "yLLM", "yLLMHint"]], inputs);
}

// fromAddress opens the request or trace that the address names.
function fromAddress() {
  state.chosen = location.hash.slice(1) || null;
  if (state.drawn) schedule();
}

function wire() {
  for (const id of ["window", "route", "outcome"]) $(id).addEventListener("change", schedule);
  $("search").addEventListener("input", schedule);
  $("filters").addEventListener("submit", (e) => { e.preventDefault(); if (view.length) choose(view.at(-1)); });
  $("follow").addEventListener("click", () => choose(null));
  $("more").addEventListener("click", () => { state.shown += 50; schedule(); });
  $("pause").addEventListener("click", () => {
    state.paused = !state.paused;
    $("pause").setAttribute("aria-pressed", String(state.paused));
    translate();
    status();
    poll();
  });
  $("lang").addEventListener("click", () => {
    lang = lang === "ko" ? "en" : "ko";
    localStorage.setItem("ragd.lang", lang);
    translate();
    schedule();
  });
  $("key-form").addEventListener("submit", (e) => {
    e.preventDefault();
    sessionStorage.setItem("ragd.key", $("key").value);
    $("key").value = "";
    poll();
  });
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && state.chosen) choose(null); });
  document.addEventListener("visibilitychange", poll);
  addEventListener("hashchange", fromAddress);
  new ResizeObserver(schedule).observe($("main"));
}

translate();
wire();
fromAddress();
poll();
