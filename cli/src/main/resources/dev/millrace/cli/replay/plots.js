const colors = ["#1f77b4", "#d9660a", "#2ca02c", "#9467bd", "#c43c39", "#17807a", "#7f7f7f", "#b8a000"];
const hidden = new Set();
const svgNs = "http://www.w3.org/2000/svg";
const color = a => colors[a % colors.length];
const element = (parent, name, text) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text; parent.append(e); return e; };
const shape = (parent, name, attributes) => { const e = document.createElementNS(svgNs, name); for (const k in attributes) e.setAttribute(k, attributes[k]); parent.append(e); return e; };
const short = v => v === null ? "-" : v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2) : String(+v.toPrecision(4));

function legend(parent, names, redraw) {
  names.forEach((name, a) => {
    const label = element(parent, "label");
    const box = element(label, "input"); box.type = "checkbox"; box.checked = true;
    const key = element(label, "span"); key.className = "key"; key.style.background = color(a);
    label.append(name);
    box.onchange = () => { box.checked ? hidden.delete(a) : hidden.add(a); redraw(); };
  });
}

const W = 960, H = 220, L = 62, R = 10, T = 10, B = 26;
function plot(parent, title, xs, where, series) {
  element(parent, "h2", title);
  const svg = shape(parent, "svg", {viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none"});
  const read = element(parent, "div"); read.className = "read";
  const seen = series.filter(s => !hidden.has(s.a));
  const all = seen.flatMap(s => s.values).filter(v => v !== null);
  if (!all.length) { read.textContent = "nothing to show"; return; }
  let low = Math.min(...all), high = Math.max(...all);
  if (low > 0 && low < high / 2) low = 0;
  if (high === low) { high += Math.abs(high) * .1 || 1; low -= Math.abs(low) * .1; }
  const x0 = xs[0], x1 = xs[xs.length - 1] === x0 ? x0 + 1 : xs[xs.length - 1];
  const X = x => L + (x - x0) / (x1 - x0) * (W - L - R), Y = y => T + (high - y) / (high - low) * (H - T - B);
  for (let i = 0; i <= 4; i++) {
    const v = low + (high - low) * i / 4;
    shape(svg, "line", {x1: L, x2: W - R, y1: Y(v), y2: Y(v), class: "axis", "stroke-width": i ? .5 : 1});
    shape(svg, "text", {x: L - 6, y: Y(v) + 4, "text-anchor": "end"}).textContent = short(v);
  }
  [0, .25, .5, .75, 1].forEach(f => shape(svg, "text", {x: L + f * (W - L - R), y: H - 8, "text-anchor": f === 1 ? "end" : f ? "middle" : "start"})
    .textContent = Math.round(x0 + f * (x1 - x0)));
  seen.forEach(s => {
    let d = "", pen = false;
    s.values.forEach((v, i) => { if (v === null) pen = false; else { d += (pen ? "L" : "M") + X(xs[i]).toFixed(1) + " " + Y(v).toFixed(1); pen = true; } });
    shape(svg, "path", {d, fill: "none", stroke: s.color, "stroke-width": 1.6});
  });
  const at = shape(svg, "line", {y1: T, y2: H - B, class: "at", visibility: "hidden"});
  svg.onmousemove = event => {
    const box = svg.getBoundingClientRect(), x = x0 + ((event.clientX - box.left) / box.width * W - L) / (W - L - R) * (x1 - x0);
    let i = 0; xs.forEach((v, n) => { if (Math.abs(v - x) < Math.abs(xs[i] - x)) i = n; });
    at.setAttribute("x1", X(xs[i])); at.setAttribute("x2", X(xs[i])); at.setAttribute("visibility", "visible");
    read.textContent = where(i) + ":  " + seen.map(s => s.name + " " + short(s.values[i])).join("   ");
  };
  svg.onmouseleave = () => { at.setAttribute("visibility", "hidden"); read.textContent = ""; };
}
