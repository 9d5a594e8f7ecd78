const colors = ['#1f77b4', '#d9660a', '#2ca02c', '#9467bd', '#8c564b', '#e377c2', '#17becf', '#bcbd22'];
const body = document.getElementById('body'), tip = document.getElementById('tip');
const svg = (name, attributes, parent) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(made);
  return made;
};
const add = (name, text, parent) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  (parent || body).appendChild(made);
  return made;
};
const short = x => Math.abs(x) >= 1e6 ? (x / 1e6).toPrecision(3) + 'M' : Math.abs(x) >= 1e4 ? (x / 1e3).toPrecision(3) + 'k'
  : Math.abs(x) >= 100 ? x.toFixed(0) : String(+x.toPrecision(3));
const label = settings => Object.entries(settings).map(([k, v]) => k.split('.').pop() + ' ' + v).join(', ') || 'as it is';

/** series: [{name, points: [[x, y]]}]; log: logarithmic y */
function chart(parent, caption, xTitle, series, log) {
  const W = 520, H = 300, L = 55, R = 10, T = 10, B = 35;
  const figure = add('figure', undefined, parent), drawing = svg('svg', {width: W, height: H, viewBox: `0 0 ${W} ${H}`}, figure);
  const points = series.flatMap(s => s.points).filter(p => isFinite(p[0]) && isFinite(p[1]) && (!log || p[1] > 0));
  add('figcaption', caption, figure);
  if (!points.length) return;
  const xMax = Math.max(...points.map(p => p[0])) || 1, yMax = Math.max(...points.map(p => p[1])) || 1;
  const yMin = log ? Math.min(...points.map(p => p[1])) : 0;
  const x = v => L + (W - L - R) * v / xMax;
  const y = v => log ? H - B - (H - B - T) * (Math.log(v / yMin) / (Math.log(yMax / yMin) || 1)) : H - B - (H - B - T) * v / yMax;
  for (let i = 0; i <= 4; i++) {
    const yv = log ? yMin * Math.pow(yMax / yMin, i / 4) : yMax * i / 4;
    svg('line', {x1: L, x2: W - R, y1: y(yv), y2: y(yv), stroke: '#eee'}, drawing);
    svg('text', {x: L - 5, y: y(yv) + 4, 'text-anchor': 'end'}, drawing).textContent = short(yv);
    svg('text', {x: x(xMax * i / 4), y: H - B + 15, 'text-anchor': 'middle'}, drawing).textContent = short(xMax * i / 4);
  }
  svg('text', {x: (W + L) / 2, y: H - 4, 'text-anchor': 'middle'}, drawing).textContent = xTitle;
  series.forEach((s, i) => {
    const color = s.color || colors[i % colors.length];
    const shown = s.points.filter(p => isFinite(p[1]) && (!log || p[1] > 0));
    svg('polyline', {points: shown.map(p => x(p[0]) + ',' + y(p[1])).join(' '), fill: 'none', stroke: color, 'stroke-width': 1.6,
      'stroke-dasharray': s.dashed ? '4 3' : 'none'}, drawing);
    shown.forEach(p => {
      const dot = svg('circle', {cx: x(p[0]), cy: y(p[1]), r: 3, fill: color, opacity: s.dashed ? 0 : 0.8}, drawing);
      dot.addEventListener('mousemove', e => {
        tip.style.display = 'block'; tip.style.left = e.clientX + 12 + 'px'; tip.style.top = e.clientY + 'px';
        tip.textContent = `${s.name}: ${short(p[1])} at ${short(p[0])}`;
      });
      dot.addEventListener('mouseleave', () => { tip.style.display = 'none'; });
    });
  });
  const legend = add('div', undefined, figure); legend.className = 'legend';
  series.forEach((s, i) => { add('span', '■ ' + s.name, legend).style.color = s.color || colors[i % colors.length]; });
}

const o = report.origin;
document.getElementById('origin').textContent =
  `${o.started_at} · ${o.machine}, ${o.processors} processors, load average ${o.load_average.toFixed(1)} · ${o.jvm} · Kafka ${o.kafka} · commit ${o.commit} · ${o.command}`;
document.getElementById('workload').textContent = report.workload;
