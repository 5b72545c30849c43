// Draws the panels of a dashboard as a page: each at its gridPos, with the results of its queries.

/** Pixels of the page, and of one of the 24 columns and of a row of the grid. */
export const PAGE = 1280;
const GAP = 8;
const COLUMN = (PAGE - GAP) / 24;
const ROW = 26;

/** Colours of series, which most people can distinguish. */
const COLORS = ['#0b6e99', '#c2410c', '#3f7d20', '#8e3b8a', '#a16207', '#1d4ed8', '#be123c', '#0f766e', '#57534e', '#7c3aed'];

const escaped = (text) => String(text).replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);

/** Returns a number with three digits, and the prefix of its unit. */
function scaled(value, base, names) {
  let power = 0;
  while (Math.abs(value) >= base && power < names.length - 1) {
    value /= base;
    power += 1;
  }
  return `${Number(value.toPrecision(3))}${names[power]}`;
}

/** Returns a value in its unit, with Grafana's names of units. */
export function inUnit(value, unit) {
  if (unit === 'percentunit') return `${Number((value * 100).toPrecision(3))} %`;
  if (unit === 'bytes') return scaled(value, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']);
  if (unit === 'reqps') return `${scaled(value, 1000, ['', ' K', ' M'])} /s`;
  if (unit === 'short') return scaled(value, 1000, ['', ' K', ' M', ' G', ' T']);
  if (unit !== 's') throw new Error(`the unit ${unit} is not one that is drawn`);
  if (value === 0) return '0 s';
  if (value < 0.001) return `${Number((value * 1e6).toPrecision(3))} µs`;
  if (value < 1) return `${Number((value * 1000).toPrecision(3))} ms`;
  return value < 60 ? `${Number(value.toPrecision(3))} s` : `${Number((value / 60).toPrecision(3))} min`;
}

/** Returns round steps from 0 to at least `most`. */
function ticks(most, unit) {
  const base = unit === 'bytes' ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
  const rough = most / base / 3;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * decade).find((step) => step >= rough) * base;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

/** Returns lines over time, with their legend. */
function chart({ width, height, unit, series, from, to }) {
  const [left, bottom, top] = [62, 18, 6];
  const legend = series.map(({ name }, index) =>
    `<span><i style="background:${COLORS[index % COLORS.length]}"></i>${escaped(name)}</span>`).join('');
  const tall = height - 30 - (series.length > 4 ? 34 : 20);
  const most = Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value)), 0);
  const marks = ticks(most > 0 ? most : 1, unit);
  const x = (time) => left + ((time - from) / (to - from)) * (width - left - 8);
  const y = (value) => tall - bottom - (value / marks.at(-1)) * (tall - bottom - top);
  const grid = marks.map((mark) => `<line x1="${left}" x2="${width - 8}" y1="${y(mark)}" y2="${y(mark)}"/>` +
    `<text x="${left - 6}" y="${y(mark) + 4}" text-anchor="end">${escaped(inUnit(mark, unit))}</text>`);
  const times = [0, 0.25, 0.5, 0.75, 1].map((part) => from + part * (to - from));
  const clock = times.map((time, index) => `<text x="${x(time)}" y="${tall - 3}" text-anchor="${['start', 'middle', 'middle', 'middle', 'end'][index]}">` +
    `${new Date(time * 1000).toISOString().slice(11, 19)}</text>`);
  const lines = series.map(({ points }, index) =>
    `<polyline stroke="${COLORS[index % COLORS.length]}" points="${points.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}"/>`);
  return `<svg width="${width}" height="${tall}"><g class="grid">${grid.join('')}${clock.join('')}</g>${lines.join('')}</svg>` +
    `<div class="legend">${legend}</div>`;
}

/** Returns one panel, or the heading of a row. */
function panel({ type, title, gridPos, fieldConfig }, series, window) {
  const [width, height] = [gridPos.w * COLUMN - GAP, gridPos.h * ROW - GAP];
  const place = `left:${gridPos.x * COLUMN + GAP}px;top:${gridPos.y * ROW + GAP}px;width:${width}px;height:${height}px`;
  if (type === 'row') return `<h2 style="${place}">${escaped(title)}</h2>`;
  const unit = fieldConfig.defaults.unit;
  let inside;
  if (type === 'stat') inside = `<p class="stat">${escaped(inUnit(series[0].points.at(-1)[1], unit))}</p>`;
  else if (type === 'timeseries') inside = chart({ width, height, unit, series, ...window });
  else throw new Error(`panels of the type ${type} are not drawn`);
  return `<section style="${place}"><h3>${escaped(title)}</h3>${inside}</section>`;
}

/** Returns the page. `found` has the series of each panel by its id: a name, and points of a time and a value. */
export function drawn(dashboard, found, window) {
  const rows = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const panels = dashboard.panels.map((each) => panel(each, found.get(each.id), window));
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(dashboard.title)}</title><style>
    * { box-sizing: border-box; margin: 0 }
    body { background: #f4f5f5; color: #24292e; font: 12px sans-serif; height: ${rows * ROW + 2 * GAP}px; position: relative; width: ${PAGE}px }
    h2 { font-size: 13px; padding-top: 3px; position: absolute }
    h3 { font-size: 12px; font-weight: 600; padding: 5px 8px 0 }
    section { background: #fff; border: 1px solid #d8dadd; border-radius: 2px; overflow: hidden; position: absolute }
    .stat { color: #3f7d20; font-size: 28px; font-weight: 600; padding-top: 12px; text-align: center }
    polyline { fill: none; stroke-linejoin: round; stroke-width: 1.5 }
    .grid line { stroke: #e4e5e7 }
    .grid text { fill: #555; font-size: 10px }
    .legend { font-size: 11px; line-height: 15px; padding: 0 8px }
    .legend span { margin-right: 12px; white-space: nowrap }
    .legend i { display: inline-block; height: 3px; margin-right: 5px; vertical-align: middle; width: 12px }
  </style>${panels.join('')}</html>`;
}
