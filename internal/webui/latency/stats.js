// Figures over the records. Nothing here touches the page.

// The disjoint stages: their sum is the total.
export const stages = ["retrieval", "rerank", "pack", "render", "queue", "prefill", "decode", "other"];

export const stageMS = (r, stage) => Math.max(0, r.timings[stage + "_ms"]);

// percentile is the nearest-rank percentile of sorted values; null without any.
export function percentile(sorted, p) {
  if (!sorted.length) return null;
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)];
}

export const sorted = (values) => values.filter((v) => v !== null).sort((a, b) => a - b);

export const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0);

export const stageMeans = (rows) => Object.fromEntries(stages.map((s) => [s, mean(rows.map((r) => stageMS(r, s)))]));

// fit is the least-squares line through points {x, y}: slope, intercept and R²;
// null where x does not vary.
export function fit(points) {
  const n = points.length;
  if (n < 3) return null;
  const mx = mean(points.map((p) => p.x)), my = mean(points.map((p) => p.y));
  let xx = 0, xy = 0, yy = 0;
  for (const { x, y } of points) {
    xx += (x - mx) ** 2;
    xy += (x - mx) * (y - my);
    yy += (y - my) ** 2;
  }
  if (xx === 0) return null;
  const slope = xy / xx;
  return { slope, intercept: my - slope * mx, r2: yy === 0 ? 1 : (xy * xy) / (xx * yy), n };
}

// cohorts are the requests at or over the 95th and at or under the 50th
// percentile of the total.
export function cohorts(rows) {
  const totals = sorted(rows.map((r) => r.timings.total_ms));
  const p50 = percentile(totals, 50), p95 = percentile(totals, 95);
  return {
    typical: rows.filter((r) => r.timings.total_ms <= p50), p50,
    slow: rows.filter((r) => r.timings.total_ms >= p95), p95,
  };
}

// steps are the widths of time buckets in seconds.
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

// overTime sorts rows into at most n buckets of equal width, oldest first; empty
// buckets stay, so that a quiet hour looks like one.
export function overTime(rows, n) {
  if (!rows.length) return { step: 0, buckets: [] };
  const at = rows.map((r) => Date.parse(r.received) / 1000);
  const first = at.reduce((a, b) => Math.min(a, b)), last = at.reduce((a, b) => Math.max(a, b));
  const step = steps.find((s) => (last - first) / s < n - 1) ?? (last - first) / (n - 1);
  const start = Math.floor(first / step) * step;
  const buckets = Array.from({ length: Math.floor((last - start) / step) + 1 }, (_, i) => ({ at: start + i * step, rows: [] }));
  rows.forEach((r, i) => buckets[Math.floor((at[i] - start) / step)].rows.push(r));
  return { step, buckets };
}

// binOf is the bin of v among n bins of equal width on a logarithmic axis from the
// first to the last of sorted values.
export function binOf(v, values, n) {
  const log = (x) => Math.log(Math.max(x, 1e-3)), lo = log(values[0]), hi = log(values.at(-1));
  return hi > lo ? Math.min(n - 1, Math.floor(((log(v) - lo) / (hi - lo)) * n)) : n >> 1;
}

// histogram counts sorted values into those bins.
export function histogram(values, n) {
  const bins = new Array(n).fill(0);
  for (const v of values) bins[binOf(v, values, n)]++;
  return bins;
}
