// SVG charts without a library. Text only ever enters as text nodes: nothing
// that a document or a question says can become markup.

const NS = "http://www.w3.org/2000/svg";

// svg makes an element with attributes and children.
export function svg(tag, attrs = {}, ...children) {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// ticks are about n round numbers from 0 to max.
export function ticks(max, n) {
  if (!(max > 0)) return [0];
  const raw = max / n, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((s) => s >= raw);
  const out = [];
  for (let v = 0; v <= max * 1.0001; v += step) out.push(v);
  return out;
}

// room is the drawing area inside a chart of the host's width.
function room(host, height, left) {
  const width = Math.max(220, host.clientWidth);
  return { width, height, left, right: width - 8, top: 10, bottom: height - 24 };
}

function canvas(host, r, label) {
  const root = svg("svg", { width: r.width, height: r.height, viewBox: `0 0 ${r.width} ${r.height}`, "aria-hidden": "true" });
  host.replaceChildren(root);
  host.setAttribute("aria-label", label);
  return root;
}

// yAxis draws grid lines with their values and returns the scale.
function yAxis(root, r, max, format) {
  const marks = ticks(max, Math.max(2, Math.round((r.bottom - r.top) / 45)));
  const top = Math.max(max, marks.at(-1)) || 1;
  const y = (v) => r.bottom - (v / top) * (r.bottom - r.top);
  for (const m of marks) {
    root.append(svg("line", { class: "grid", x1: r.left, x2: r.right, y1: y(m), y2: y(m) }),
      svg("text", { class: "tick", x: r.left - 6, y: y(m) + 3.5, "text-anchor": "end" }, format(m)));
  }
  return y;
}

// walker lets the pointer and the arrow keys move over n things. The handlers of
// a host are replaced at each drawing, so that they see its present data.
function walker(host, n, at, { focus, open, nearest }) {
  const go = (i) => n && focus(Math.max(0, Math.min(n - 1, i)));
  host.tabIndex = 0;
  host.setAttribute("role", "application");
  host.onkeydown = (e) => {
    const moves = { ArrowLeft: at() - 1, ArrowRight: at() + 1, Home: 0, End: n - 1, PageUp: at() - 10, PageDown: at() + 10 };
    if (e.key in moves) go(at() < 0 ? n - 1 : moves[e.key]);
    else if ((e.key === "Enter" || e.key === " ") && at() >= 0) open?.(at());
    else return;
    e.preventDefault();
  };
  host.onpointermove = (e) => {
    const box = host.getBoundingClientRect();
    go(nearest(e.clientX - box.left, e.clientY - box.top));
  };
  host.onclick = () => at() >= 0 && open?.(at());
  host.onpointerleave = () => host !== document.activeElement && focus(-1);
  host.onblur = () => focus(-1);
}

// blank says in words that there is nothing to draw.
export function blank(host, text) {
  const p = document.createElement("p");
  p.className = "muted";
  p.textContent = text;
  host.replaceChildren(p);
  for (const name of ["tabindex", "role", "aria-label"]) host.removeAttribute(name);
  host.onkeydown = host.onpointermove = host.onclick = host.onpointerleave = host.onblur = null;
}

// columns draws stacked columns. Each column is {parts: {key: value}, label?, chosen?};
// share draws them as parts of 100.
export function columns(host, { label, cols, keys, share, format, height = 220, hover, onHover, onOpen }) {
  const r = room(host, height, 56), root = canvas(host, r, label);
  const sum = (c) => keys.reduce((a, k) => a + (c.parts[k] ?? 0), 0);
  const max = share ? 100 : Math.max(...cols.map(sum), 0);
  const y = yAxis(root, r, max, share ? (v) => `${v} %` : format);
  const step = (r.right - r.left) / Math.max(cols.length, 12);
  const width = Math.max(1.5, Math.min(28, step * (step > 6 ? 0.78 : 0.9)));
  const start = r.right - step * cols.length;
  cols.forEach((c, i) => {
    const total = sum(c), x = start + step * i + (step - width) / 2;
    const g = svg("g", { class: `col${i === hover ? " hover" : ""}${c.chosen ? " chosen" : ""}` });
    if (i === hover || c.chosen) g.append(svg("rect", { class: "back", x: start + step * i, y: r.top - 4, width: step, height: r.bottom - r.top + 4 }));
    let base = 0;
    for (const k of keys) {
      const v = share ? (total ? ((c.parts[k] ?? 0) / total) * 100 : 0) : (c.parts[k] ?? 0);
      if (v <= 0) continue;
      const top = y(base + v);
      g.append(svg("rect", { class: `part s-${k}`, x, y: top, width, height: Math.max(0.4, y(base) - top) }));
      base += v;
    }
    if (c.chosen) g.append(svg("rect", { class: "ring", x: start + step * i + 1, y: r.bottom + 3, width: Math.max(2, step - 2), height: 3, rx: 1.5 }));
    root.append(g);
  });
  xLabels(root, r, cols, (i) => start + step * (i + 0.5));
  walker(host, cols.length, () => hover, {
    focus: onHover, open: onOpen, nearest: (px) => Math.floor((px - start) / step),
  });
}

// xLabels writes the labels of columns with room between them.
function xLabels(root, r, cols, x) {
  let free = r.left;
  cols.forEach((c, i) => {
    if (!c.label || x(i) - 26 < free || x(i) + 26 > r.right + 8) return;
    root.append(svg("text", { class: "tick", x: x(i), y: r.height - 5, "text-anchor": "middle" }, c.label));
    free = x(i) + 56;
  });
}

// scatter draws points {x, y, hollow?, chosen?} and a line {slope, intercept}.
export function scatter(host, { label, points, line, formatX, formatY, height = 260, hover, onHover, onOpen }) {
  const r = room(host, height, 56), root = canvas(host, r, label);
  const maxX = Math.max(...points.map((p) => p.x), 1) * 1.04, maxY = Math.max(...points.map((p) => p.y), 1) * 1.06;
  const y = yAxis(root, r, maxY, formatY);
  const x = (v) => r.left + (v / maxX) * (r.right - r.left);
  for (const m of ticks(maxX, Math.max(3, Math.round((r.right - r.left) / 90)))) {
    root.append(svg("text", { class: "tick", x: x(m), y: r.height - 5, "text-anchor": "middle" }, formatX(m)));
  }
  if (line) root.append(fitted(line, points, x, y));
  points.forEach((p, i) => {
    const state = i === hover ? " hover" : p.chosen ? " chosen" : "";
    root.append(svg("circle", { class: `dot${p.hollow ? " hollow" : ""}${state}`, cx: x(p.x), cy: y(p.y), r: state ? 5.5 : 3.2 }));
  });
  const place = points.map((p) => [x(p.x), y(p.y)]);
  walker(host, points.length, () => hover, { focus: onHover, open: onOpen, nearest: (px, py) => nearest(place, px, py) });
}

// fitted is the line over the range of the points, clipped at zero.
function fitted({ slope, intercept }, points, x, y) {
  let from = Math.min(...points.map((p) => p.x)), to = Math.max(...points.map((p) => p.x));
  const zero = -intercept / slope;
  if (slope > 0) from = Math.max(from, zero);
  if (slope < 0) to = Math.min(to, zero);
  return svg("line", { class: "fitted", x1: x(from), x2: x(to), y1: y(slope * from + intercept), y2: y(slope * to + intercept) });
}

function nearest(place, px, py) {
  let best = -1, least = Infinity;
  place.forEach(([x, y], i) => {
    const d = (x - px) ** 2 + (y - py) ** 2;
    if (d < least) [best, least] = [i, d];
  });
  return best;
}

// waterfall draws when each stage ran. rows are {name, stage, start, length, inner};
// marks are {at, text}.
export function waterfall(host, { label, rows, total, marks, format }) {
  const line = 24, left = Math.min(120, Math.max(92, host.clientWidth * 0.24));
  const r = { ...room(host, rows.length * line + 44, left), top: 26 };
  r.right = r.width - 64;
  const root = canvas(host, r, label);
  host.setAttribute("role", "img");
  const x = (v) => r.left + (v / (total || 1)) * (r.right - r.left), foot = r.top + rows.length * line;
  for (const m of ticks(total, Math.max(2, Math.round((r.right - r.left) / 90)))) {
    root.append(svg("line", { class: "grid", x1: x(m), x2: x(m), y1: r.top - 6, y2: foot }),
      svg("text", { class: "tick", x: x(m), y: 12, "text-anchor": m === 0 ? "start" : "middle" }, format(m)));
  }
  rows.forEach((row, i) => {
    const y = r.top + i * line, from = x(row.start), width = Math.max(1.5, x(row.start + row.length) - from);
    root.append(
      svg("text", { class: `row${row.inner ? " inner" : ""}`, x: row.inner ? 12 : 0, y: y + 14 }, row.name),
      svg("rect", { class: `part s-${row.stage}${row.inner ? " inner" : ""}`, x: from, y: y + (row.inner ? 6 : 3), width, height: row.inner ? 10 : 16, rx: 2 }),
      svg("text", { class: "value", x: from + width + 5, y: y + 14.5 }, format(row.length)));
  });
  for (const m of marks) {
    root.append(svg("line", { class: "mark", x1: x(m.at), x2: x(m.at), y1: r.top - 6, y2: foot + 2 }),
      svg("text", { class: "mark-text", x: x(m.at), y: foot + 14, "text-anchor": x(m.at) > r.right - 60 ? "end" : "middle" }, m.text));
  }
}

// strip draws counts as a row of thin bars with marks at bins.
export function strip(counts, marked) {
  const width = 100, height = 26, max = Math.max(...counts, 1), w = width / counts.length;
  const root = svg("svg", { class: "strip", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  counts.forEach((n, i) => {
    const h = n ? Math.max(1.5, (n / max) * height) : 0.6;
    root.append(svg("rect", { class: i >= marked ? "late" : "early", x: i * w + 0.3, y: height - h, width: w - 0.6, height: h }));
  });
  return root;
}
