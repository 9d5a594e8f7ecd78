'use strict';
const report = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const COLOURS = 7;
const DASHES = ['', '7 4', '2 3', '9 3 2 3'];
const MARKED_POINTS = 40;
const MARKERS = [
  'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0', 'M-3 -3h6v6h-6z', 'M0 -4l4 7h-8z', 'M0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z', 'M-3.5 -1h2.5v-2.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5z'];
const ABSENT = '–';
const hidden = new Set();
const drawings = [];

const names = [...new Set(report.sections.flatMap(s => s.charts).flatMap(c => c.series).filter(s => s.style !== 'REFERENCE').map(s => s.name))];
const look = series => {
  const i = names.indexOf(series.name);
  return series.style === 'REFERENCE' || i < 0 ? {colour: 'var(--soft)', dash: '7 4', marker: '', width: 1}
    : {colour: `var(--c${i % COLOURS})`, dash: DASHES[i % DASHES.length], marker: MARKERS[i % MARKERS.length], width: 1.8};
};

const element = (parent, name, text, attributes) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
};
const shape = (parent, name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
};
const short = v => v === null || v === undefined ? ABSENT : v === 0 ? '0'
  : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3 ? v.toExponential(2) : Math.abs(v) >= 1e4 ? v.toFixed(0) : String(+v.toPrecision(4));
const titled = axis => axis.name && axis.unit ? axis.name + ', ' + axis.unit : axis.name || axis.unit;

function shown(value, format) {
  if (value === null || value === undefined) return ABSENT;
  if (typeof value !== 'number') return String(value);
  switch (format.kind) {
    case 'COUNT': return value.toLocaleString('en-US');
    case 'DECIMALS': return value.toFixed(format.digits);
    case 'SIGNIFICANT': return value.toPrecision(format.digits);
    case 'PERCENT': return (100 * value).toFixed(format.digits) + ' %';
    default: return String(value);
  }
}

function table(parent, of) {
  const scroll = element(parent, 'div', undefined, {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': of.title || 'table'});
  const made = element(scroll, 'table');
  if (of.title) element(made, 'caption', of.title);
  const head = element(element(made, 'thead'), 'tr');
  const side = column => column.format.kind === 'TEXT' ? {class: 'text'} : {};
  of.columns.forEach(column => {
    const cell = element(head, 'th', column.name, {scope: 'col', ...side(column)});
    if (column.unit) element(cell, 'span', (column.name ? ', ' : '') + column.unit, {class: 'unit'});
  });
  const body = element(made, 'tbody');
  of.rows.forEach(row => {
    const line = element(body, 'tr');
    row.forEach((value, c) => element(line, c ? 'td' : 'th', shown(value, of.columns[c].format), {...(c ? {} : {scope: 'row'}), ...side(of.columns[c])}));
  });
}

/** Round places between two values, at most so many. */
function ticks(low, high, most, log) {
  const all = [];
  if (log) {
    const decades = Math.log10(high / low), steps = decades > most / 2 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7];
    const every = Math.max(1, Math.ceil(decades / most));
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      if (e % every === 0) steps.forEach(s => { const v = s * Math.pow(10, e); if (v >= low * .999 && v <= high * 1.001) all.push(v); });
    return all;
  }
  const rough = (high - low) / most, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = power * [1, 2, 5, 10].find(s => s * power >= rough * .999);
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) all.push(i * step);
  return all;
}
function tickText(v, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(v) || 1, size = Math.max(...all.map(Math.abs));
  if (v === 0) return '0';
  if (size >= 1e9 || size < 1e-4) return (+v.toPrecision(3)).toExponential().replace('e+', 'e');
  const [by, unit] = size >= 1e6 ? [1e6, 'M'] : size >= 1e4 ? [1e3, 'k'] : [1, ''];
  return (v / by).toFixed(Math.min(6, Math.max(0, -Math.floor(Math.log10(step / by) + 1e-9)))).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') + unit;
}
function extent(values, axis, flat) {
  let low = axis.from ?? Math.min(...values), high = axis.to ?? Math.max(...values);
  values.forEach(v => { if (v > high) high = v; if (v < low) low = v; });
  if (axis.log) return high > low ? [low, high] : [low / 2, high * 2];
  if (flat) return high > low ? [low, high] : [low - .5, high + .5];
  if (axis.from === undefined && low > 0 && low < high / 2) low = 0;
  const least = Math.max(Math.abs(high), Math.abs(low)) * .1 || 1; // a small difference is not to look like a large one
  if (high - low < least && axis.from === undefined) { const middle = (high + low) / 2; low = middle - least / 2; high = middle + least / 2; }
  const round = ticks(low, high, 5, false), step = round.length > 1 ? round[1] - round[0] : least;
  return [axis.from ?? Math.floor(low / step + 1e-9) * step, axis.to !== undefined && axis.to >= high ? high : Math.ceil(high / step - 1e-9) * step];
}

function chart(parent, of) {
  const figure = element(parent, 'figure');
  element(figure, 'h3', of.title);
  const svg = shape(figure, 'svg', {tabindex: 0, role: 'img'});
  const read = element(figure, 'p', undefined, {class: 'read', 'aria-live': 'polite'});
  const drawing = {of, svg, read, x: null, places: [], show: () => {}};
  drawings.push(drawing);
  const move = x => { drawings.forEach(d => { if (d === drawing || d.of.x.name && d.of.x.name === of.x.name) { d.x = x; d.show(); } }); };
  svg.addEventListener('keydown', event => {
    const n = drawing.places.length, at = drawing.places.indexOf(drawing.x);
    const to = {ArrowRight: at + 1, ArrowLeft: at < 0 ? n - 1 : at - 1, Home: 0, End: n - 1, PageUp: at - Math.ceil(n / 10), PageDown: at + Math.ceil(n / 10)}[event.key];
    if (event.key === 'Escape') move(null);
    if (to === undefined || !n) return;
    event.preventDefault();
    move(drawing.places[Math.max(0, Math.min(n - 1, to))]);
  });
  svg.addEventListener('pointermove', event => {
    if (!drawing.places.length) return;
    const wanted = drawing.back(event.clientX - svg.getBoundingClientRect().left);
    const distance = x => Math.abs((of.x.log ? Math.log(x) - Math.log(wanted) : x - wanted));
    move(drawing.places.reduce((best, x) => distance(x) < distance(best) ? x : best));
  });
  svg.addEventListener('pointerleave', () => move(null));
  new ResizeObserver(() => draw(drawing)).observe(figure);
}

function draw(drawing) {
  const {of, svg, read} = drawing;
  svg.replaceChildren();
  const W = svg.clientWidth || svg.parentNode.clientWidth, H = Math.round(Math.max(190, Math.min(300, W * .5)));
  if (!W) return;
  svg.setAttribute('viewBox', `0 0 ${W} ${H}`);
  svg.setAttribute('height', H);
  const usable = s => s.x.map((x, i) => [x, s.y[i]]).map(([x, y]) => x === null || of.x.log && x <= 0 ? null : [x, y === null || of.y.log && y <= 0 ? null : y]).filter(p => p);
  const series = of.series.filter(s => !hidden.has(s.name)).map(s => ({...look(s), style: s.style, name: s.name, points: usable(s)}));
  const values = series.flatMap(s => s.points).filter(p => p[1] !== null);
  drawing.places = [...new Set(values.map(p => p[0]))].sort((a, b) => a - b);
  svg.setAttribute('aria-label', of.title + '. ' + (values.length
    ? `${titled(of.x) || 'x'} from ${short(drawing.places[0])} to ${short(drawing.places.at(-1))}. ` + series.map(s => `${s.name} ends at ${short(s.points.filter(p => p[1] !== null).at(-1)?.[1])}`).join('; ')
      + '. Arrow keys read the values.' : 'Nothing to show.'));
  drawing.show = () => {};
  if (!values.length) { read.textContent = 'nothing to show'; return; }
  const [y0, y1] = extent(values.map(p => p[1]), of.y, false), [x0, x1] = extent(drawing.places, of.x, true);
  const yTicks = ticks(y0, y1, 5, of.y.log), labels = yTicks.map(v => tickText(v, yTicks));
  const yTitle = titled(of.y), L = 14 + 7 * Math.max(...labels.map(l => l.length), 1), R = 12, T = yTitle ? 24 : 10, B = titled(of.x) ? 42 : 24;
  const scale = (v, low, high, log) => log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
  const X = x => L + scale(x, x0, x1, of.x.log) * (W - L - R), Y = y => H - B - scale(y, y0, y1, of.y.log) * (H - T - B);
  drawing.back = px => { const f = (px - L) / (W - L - R); return of.x.log ? x0 * Math.pow(x1 / x0, f) : x0 + f * (x1 - x0); };
  yTicks.forEach((v, i) => {
    shape(svg, 'line', {x1: L, x2: W - R, y1: Y(v), y2: Y(v), class: 'grid'});
    shape(svg, 'text', {x: L - 6, y: Y(v) + 4, 'text-anchor': 'end'}, labels[i]);
  });
  const xTicks = ticks(x0, x1, Math.max(2, Math.floor(W / 90)), of.x.log);
  xTicks.forEach(v => shape(svg, 'text', {x: X(v), y: H - B + 17, 'text-anchor': 'middle'}, tickText(v, xTicks)));
  if (titled(of.x)) shape(svg, 'text', {x: (L + W - R) / 2, y: H - 4, 'text-anchor': 'middle'}, titled(of.x));
  if (yTitle) shape(svg, 'text', {x: 0, y: 12}, yTitle);
  of.marks.filter(m => m.at >= x0 && m.at <= x1).forEach(m => {
    shape(svg, 'line', {x1: X(m.at), x2: X(m.at), y1: T, y2: H - B, class: 'mark'});
    shape(svg, 'text', {x: X(m.at) + (X(m.at) > W * .7 ? -4 : 4), y: T + 10, 'text-anchor': X(m.at) > W * .7 ? 'end' : 'start'}, m.what);
  });
  series.forEach(s => {
    if (s.style !== 'POINTS') {
      let path = '', pen = false;
      s.points.forEach(([x, y]) => { if (y !== null) path += (pen ? 'L' : 'M') + X(x).toFixed(1) + ' ' + Y(y).toFixed(1); pen = y !== null; });
      shape(svg, 'path', {d: path, fill: 'none', 'stroke-width': s.width, 'stroke-dasharray': s.dash, 'stroke-linejoin': 'round', style: `stroke: ${s.colour}`});
    }
    const alone = (p, i) => s.points[i - 1]?.[1] == null && s.points[i + 1]?.[1] == null;
    s.points.forEach((p, i) => {
      if (p[1] !== null && s.marker && (s.style === 'POINTS' || s.points.length <= MARKED_POINTS || alone(p, i)))
        shape(svg, 'path', {d: s.marker, transform: `translate(${X(p[0]).toFixed(1)} ${Y(p[1]).toFixed(1)})`, style: `fill: ${s.colour}`});
    });
  });
  const at = shape(svg, 'line', {y1: T, y2: H - B, class: 'at', visibility: 'hidden'});
  drawing.show = () => {
    const x = drawing.x;
    if (x === null || x < x0 || x > x1) { at.setAttribute('visibility', 'hidden'); read.textContent = ''; return; }
    at.setAttribute('x1', X(x)); at.setAttribute('x2', X(x)); at.setAttribute('visibility', 'visible');
    const there = series.map(s => [s.name, s.points.find(p => p[0] === x)]).filter(([, p]) => p).map(([name, p]) => `${name} ${short(p[1])}`);
    read.textContent = `${of.x.name || 'at'} ${short(x)}${of.x.unit ? ' ' + of.x.unit : ''}: ${there.join('; ')}`;
  };
  drawing.show();
}

function legend(parent, charts) {
  const all = [...new Map(charts.flatMap(c => c.series).map(s => [s.name, s])).values()];
  if (all.length < 2) return;
  const list = element(parent, 'div', undefined, {class: 'legend', role: 'group', 'aria-label': 'curves; press to hide or show'});
  all.forEach(series => {
    const button = element(list, 'button', undefined, {type: 'button', 'aria-pressed': !hidden.has(series.name)}), of = look(series);
    button.dataset.name = series.name;
    const key = shape(button, 'svg', {viewBox: '0 0 34 12', 'aria-hidden': true});
    if (series.style !== 'POINTS') shape(key, 'path', {d: 'M0 6H34', 'stroke-width': 2, 'stroke-dasharray': of.dash, style: `stroke: ${of.colour}`});
    if (of.marker) shape(key, 'path', {d: of.marker, transform: 'translate(17 6)', style: `fill: ${of.colour}`});
    button.append(series.name);
    button.onclick = () => {
      hidden.has(series.name) ? hidden.delete(series.name) : hidden.add(series.name);
      document.querySelectorAll('.legend button').forEach(b => b.setAttribute('aria-pressed', !hidden.has(b.dataset.name)));
      drawings.forEach(draw);
    };
  });
}

document.title = report.title;
const main = document.getElementById('report');
element(main, 'h1', report.title);
report.verdict.forEach(sentence => element(main, 'p', sentence, {class: 'verdict'}));
report.sections.forEach(section => {
  const part = element(main, section.closed ? 'details' : 'section');
  if (section.closed) element(part, 'summary', section.title); else if (section.title) element(part, 'h2', section.title);
  section.notes.forEach(note => element(part, 'p', note));
  section.tables.forEach(of => table(part, of));
  if (section.charts.length) {
    legend(part, section.charts);
    const charts = element(part, 'div', undefined, {class: 'charts'});
    section.charts.forEach(of => chart(charts, of));
  }
  if (section.listing) element(part, 'pre', section.listing, {tabindex: 0});
});
const o = report.origin;
if (o) document.getElementById('origin').textContent = [o.command, o.started_at, `${o.machine}, ${o.processors} processors`
  + (o.load_average < 0 ? '' : `, load average ${o.load_average.toFixed(1)}`), o.jvm, o.kafka ? 'Kafka ' + o.kafka : '', 'commit ' + o.commit].filter(t => t).join(' · ');
