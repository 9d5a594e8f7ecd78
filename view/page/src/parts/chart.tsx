// A chart over steps, time or tokens: labels at line ends, round ticks, gaps where a number is missing, a cursor that the keyboard moves.
import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { color, COLORS, cssValue, dash } from "../colors";
import { count, mean, number, short, ticks as texts, type Maybe } from "../numbers";

export interface Line {
  label: string;
  values: Maybe[];
  /** Ends of an interval around each value, drawn as a band. */
  low?: Maybe[];
  high?: Maybe[];
  /** Index of colour, dash and marker; by default the position in the list. */
  look?: number;
  /** Joined by default; a reference line is thin and grey. */
  style?: "line" | "points" | "reference";
  /** An undefined value, unlike null, makes no gap in the line. */
  sparse?: boolean;
}

export interface Rule {
  label: string;
  at: number;
}

interface Props {
  title: string;
  /** Meaning of the numbers, in a sentence. */
  about?: string;
  x: number[];
  xLabel: string;
  /** Label under the axis; empty by default. */
  xTitle?: string;
  xLog?: boolean;
  lines: Line[];
  rules?: Rule[];
  /** Events on the x axis. */
  marks?: Rule[];
  /** Smallest range of the y axis. */
  from?: number;
  to?: number;
  log?: boolean;
  format?: (value: Maybe) => string;
  height?: number;
  time?: boolean;
  /** Charts of one group have one cursor. */
  group?: string;
  onPick?: (index: number) => void;
  /** Legend without a cursor: by default the mean over all points, or each line's last value. */
  rest?: "last";
}

const FONT = "12px system-ui, sans-serif";
const GAP = 14;
const NO_LINES: Rule[] = [];

/**
 * Selects the lines to draw, each in its own colour: with too many lines only the highest, the lowest and the recorded
 * ones, by mean.
 */
export function drawn(all: Line[]): Line[] {
  const own = all.filter((line) => line.style !== "reference");
  let lines = all;
  if (own.length > COLORS) {
    const ranked = own
      .map((line) => ({ line, mean: mean(line.values) }))
      .filter((each) => each.mean !== null)
      .sort((a, b) => a.mean! - b.mean!);
    const kept = new Set([ranked[0]?.line, ranked.at(-1)?.line, own.find((line) => /^recorded\b/.test(line.label))]);
    lines = all.filter((line) => line.style === "reference" || kept.has(line));
  }
  const taken = new Set<number>();
  return lines.map((line, i) => {
    if (line.style === "reference") {
      return line;
    }
    let look = (line.look ?? i) % COLORS;
    while (taken.has(look)) {
      look = (look + 1) % COLORS;
    }
    taken.add(look);
    return { ...line, look };
  });
}

/** A line's value at an x; a line with other x values has its newest one up to there. */
export function valueAt(line: Line, place: number): Maybe {
  let at = place;
  while (line.sparse && at > 0 && line.values[at] === undefined) {
    at--;
  }
  return line.values[at];
}

export function Chart(props: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  const known = props.lines.filter((line) => line.values.some((v) => v !== null && v !== undefined));
  const lines = drawn(known);
  const form = lines.map((line) => `${line.label}${line.look ?? ""}`).join("|") + (props.rules ?? NO_LINES).map((r) => r.label + r.at).join() + theme;

  useEffect(() => {
    const again = () => setTheme((t) => t + 1);
    const query = matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", again);
    addEventListener("themechange", again);
    return () => {
      query.removeEventListener("change", again);
      removeEventListener("themechange", again);
    };
  }, []);

  useEffect(() => {
    const element = holder.current;
    if (!element || lines.length === 0) {
      return;
    }
    const made = new uPlot(options(element.clientWidth, lines, latest, setAt), data(props.x, lines), element);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientWidth !== made.width) {
        made.setSize({ width: element.clientWidth, height: latest.current.height ?? 200 });
      }
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [form]);

  useEffect(() => {
    chart.current?.setData(data(props.x, lines));
  });

  const format = props.format ?? number;
  const last = props.x.length - 1;
  const shown = at !== null && at <= last ? at : last;
  const move = (by: number | "first" | "last") => {
    const next = by === "first" ? 0 : by === "last" ? last : Math.max(0, Math.min(last, (at ?? last) + by));
    setAt(next);
    const u = chart.current;
    if (u && props.x[next] !== undefined) {
      u.setCursor({ left: u.valToPos(props.x[next] as number, "x"), top: 10 });
    }
  };
  const key = (event: KeyboardEvent) => {
    const by: Record<string, number | "first" | "last"> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: "first", End: "last" };
    const step = by[event.key];
    if (step !== undefined) {
      move(step);
      event.preventDefault();
    } else if (event.key === "Enter" && props.onPick && at !== null) {
      props.onPick(at);
    }
  };
  const isMean = at === null && props.rest !== "last";
  const read = (line: Line): string => {
    const interval = isMean || line.low?.[shown] == null || line.high?.[shown] == null ? "" : ` (${format(line.low[shown])} to ${format(line.high[shown])})`;
    return format(isMean ? mean(line.values) : valueAt(line, shown)) + interval;
  };
  const placed = (x: number | undefined) => (x === undefined ? "" : Number.isInteger(x) ? count(x) : short(x));
  const values = lines.map((line) => `${line.label} ${read(line)}`).join(", ");
  const where = props.x.length === 0 ? "" : props.time ? new Date(1000 * (props.x[shown] as number)).toISOString().slice(11, 19) : isMean && last > 0 ? `mean, ${props.xLabel} ${placed(props.x[0])} to ${placed(props.x[last])}` : at === null && props.rest === "last" ? "last" : `${props.xLabel} ${placed(props.x[shown])}`;
  return (
    <figure class="chart">
      <figcaption>
        <h3>{props.title}</h3>
        {props.about && <p class="about">{props.about}</p>}
        {lines.length < known.length && (
          <p class="about">
            {lines.length} of {known.length} drawn: the highest and the lowest mean{lines.some((line) => /^recorded\b/.test(line.label)) ? ", and the recorded" : ""}.
          </p>
        )}
      </figcaption>
      {lines.length === 0 ? (
        <p class="none">{props.x.length === 0 ? "No step yet." : "This run does not compute it."}</p>
      ) : (
        <>
          <p class="readout" aria-live="off">
            <span class="where">{where}</span>
            {lines.map((line, i) => (
              <span class="value" key={line.label}>
                <svg class="key" width="22" height="8" aria-hidden="true">
                  {line.style === "points" ? (
                    <circle cx="11" cy="4" r="3.5" fill={ink(line, i)} />
                  ) : (
                    <line x1="0" y1="4" x2="22" y2="4" stroke={ink(line, i)} stroke-width={line.style === "reference" ? 1.2 : 2.5} stroke-dasharray={dashes(line, i).join(" ")} />
                  )}
                </svg>
                {line.label} <b>{read(line)}</b>
              </span>
            ))}
          </p>
          <div
            class="plot"
            ref={holder}
            tabIndex={0}
            role="img"
            aria-label={`${props.title}: ${where}: ${values}. Arrow keys move the cursor.`}
            onKeyDown={key}
            onBlur={() => setAt(null)}
            onClick={() => at !== null && props.onPick?.(at)}
          />
        </>
      )}
    </figure>
  );
}

function data(x: number[], lines: Line[]): uPlot.AlignedData {
  const finite = (values: Maybe[], sparse?: boolean) => values.map((v) => (v === undefined && sparse ? undefined : v === null || v === undefined || !Number.isFinite(v) ? null : v));
  return [x, ...lines.map((line) => finite(line.values, line.sparse)), ...banded(lines).flatMap(({ line }) => [finite(line.high!), finite(line.low!)])] as uPlot.AlignedData;
}

function banded(lines: Line[]): { line: Line; at: number }[] {
  return lines.map((line, at) => ({ line, at })).filter(({ line }) => line.low && line.high);
}

function ink(line: Line, place: number): string {
  return line.style === "reference" ? cssValue("--muted") : color(line.look ?? place);
}

function dashes(line: Line, place: number): number[] {
  return line.style === "reference" ? [6, 4] : dash(line.look ?? place);
}

function options(width: number, lines: Line[], latest: { current: Props }, setAt: (at: number | null) => void): uPlot.Options {
  const props = latest.current;
  const text = cssValue("--text");
  const muted = cssValue("--muted");
  const grid = cssValue("--grid");
  const narrow = width < 420;
  const right = narrow ? 12 : 14 + Math.min(120, Math.max(...lines.map((line) => measure(line.label))));
  const axis = { stroke: muted, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width,
    height: props.height ?? 200,
    padding: [8, right, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false }, ...(props.group ? { sync: { key: props.group, setSeries: false } } : {}) },
    scales: {
      x: { time: props.time ?? false, ...(props.xLog ? { distr: 3 } : {}) },
      y: {
        distr: props.log ? 3 : 1,
        range: (_u, low, high) => range(latest.current, low, high),
      },
    },
    axes: [
      {
        ...axis,
        space: narrow ? 60 : 80,
        size: 34,
        ...(props.xTitle ? { label: props.xTitle, labelFont: FONT, labelSize: 18 } : {}),
        ...(props.time ? {} : { values: (_u: uPlot, ticks: (number | null)[]) => texts(ticks.map((t) => (t !== null && (props.xTitle !== undefined || Number.isInteger(t) || t % 0.5 === 0) ? t : null))) }),
      },
      {
        ...axis,
        size: (_u: uPlot, labels: string[] | null) => Math.max(52, 18 + Math.max(0, ...(labels ?? []).map((label) => measure(label ?? "")))),
        space: 34,
        values: (_u: uPlot, ticks: (number | null)[]) => texts(ticks),
      },
    ],
    series: [
      {},
      ...lines.map((line, i) => ({
        label: line.label,
        stroke: ink(line, i),
        width: line.style === "reference" ? 1 : 2,
        dash: dashes(line, i),
        spanGaps: false,
        ...(line.style === "points" ? { paths: () => null } : {}),
        points: {
          show: (_u: uPlot, _s: number, first: number, end: number) => line.style === "points" || (line.style !== "reference" && end - first < 40),
          size: line.style === "points" ? 7 : 5,
          fill: ink(line, i),
        },
      })),
      ...banded(lines).flatMap(() => [
        { width: 0, points: { show: false } },
        { width: 0, points: { show: false } },
      ]),
    ],
    bands: banded(lines).map(({ line, at }, b) => ({ series: [1 + lines.length + 2 * b, 2 + lines.length + 2 * b] as [number, number], fill: `${ink(line, at)}33` })),
    hooks: {
      setCursor: [(u) => setAt(u.cursor.idx ?? null)],
      draw: [
        (u) => {
          rules(u, latest.current.rules ?? NO_LINES, text, muted, narrow);
          marks(u, latest.current.marks ?? NO_LINES, text, muted);
          if (!narrow) {
            ends(u, lines, text);
          }
        },
      ],
    },
  };
}

function range(props: Props, low: number | null, high: number | null): [number, number] {
  const rules = (props.rules ?? []).map((rule) => rule.at);
  let from = Math.min(low ?? 0, props.from ?? Infinity, ...rules);
  let to = Math.max(high ?? 1, props.to ?? -Infinity, ...rules);
  if (props.log) {
    return [10 ** Math.floor(Math.log10(Math.max(from, 1e-12))), 10 ** Math.ceil(Math.log10(Math.max(to, 1e-11)))];
  }
  if (from === to) {
    to = from + (from === 0 ? 1 : Math.abs(from) * 0.1);
  }
  if (props.from !== undefined && from < props.from && props.from - from < 0.05 * (to - props.from)) {
    from = props.from; // noise of an estimate, not an impossible value
  }
  const step = round((to - from) / 4);
  // do not stretch a change of a few per cent to the full height
  return [Math.floor(from / step + 1e-9) * step, Math.ceil(to / step - 1e-9) * step];
}

function round(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const digit = step / power;
  return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

let context: CanvasRenderingContext2D | null = null;
function measure(label: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) {
    return 60;
  }
  context.font = FONT;
  return context.measureText(label).width;
}

/** Labels at the ends of their lines, pushed apart where they would cover each other. */
function ends(u: uPlot, lines: Line[], text: string) {
  const ratio = devicePixelRatio;
  const labels = lines.map((line, i) => {
    const values = u.data[i + 1] as Maybe[];
    let last = values.length - 1;
    while (last >= 0 && (values[last] === null || values[last] === undefined)) {
      last--;
    }
    return { label: line.label, y: last < 0 ? NaN : u.valToPos(values[last] as number, "y", true), ink: ink(line, i) };
  });
  const placed = labels.filter((l) => Number.isFinite(l.y)).sort((a, b) => a.y - b.y);
  const gap = GAP * ratio;
  for (let i = 1; i < placed.length; i++) {
    const before = placed[i - 1]!;
    const one = placed[i]!;
    one.y = Math.max(one.y, before.y + gap);
  }
  const bottom = u.bbox.top + u.bbox.height;
  for (let i = placed.length - 1, limit = bottom; i >= 0; i--) {
    const one = placed[i]!;
    one.y = Math.min(one.y, limit);
    limit = one.y - gap;
  }
  const { ctx } = u;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const one of placed) {
    ctx.fillStyle = one.ink;
    ctx.fillRect(u.bbox.left + u.bbox.width + 3 * ratio, one.y - 4 * ratio, 3 * ratio, 8 * ratio);
    ctx.fillStyle = text;
    ctx.fillText(one.label, u.bbox.left + u.bbox.width + 9 * ratio, one.y, 118 * ratio);
  }
  ctx.restore();
}

function rules(u: uPlot, all: Rule[], text: string, muted: string, narrow: boolean) {
  const ratio = devicePixelRatio;
  const { ctx } = u;
  ctx.save();
  ctx.beginPath();
  ctx.strokeStyle = muted;
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  for (const rule of all) {
    const y = u.valToPos(rule.at, "y", true);
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
  }
  ctx.stroke();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.fillStyle = narrow ? muted : text;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.strokeStyle = cssValue("--ground"); // a curve may run behind the label
  ctx.lineWidth = 3 * ratio;
  ctx.setLineDash([]);
  const taken: number[] = [];
  for (const rule of all) {
    let y = u.valToPos(rule.at, "y", true) - 4 * ratio;
    while (taken.some((other) => Math.abs(other - y) < GAP * ratio)) {
      y += GAP * ratio;
    }
    taken.push(y);
    ctx.strokeText(rule.label, u.bbox.left + 6 * ratio, y);
    ctx.fillText(rule.label, u.bbox.left + 6 * ratio, y);
  }
  ctx.restore();
}

function marks(u: uPlot, all: Rule[], text: string, muted: string) {
  const ratio = devicePixelRatio;
  const { ctx } = u;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "alphabetic";
  const rows: number[][] = []; // from and to of the labels in each row
  for (const mark of all) {
    const x = u.valToPos(mark.at, "x", true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) {
      continue;
    }
    ctx.beginPath();
    ctx.strokeStyle = muted;
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, u.bbox.top + u.bbox.height);
    ctx.stroke();
    const isRight = x > u.bbox.left + 0.7 * u.bbox.width;
    ctx.fillStyle = text;
    ctx.textAlign = isRight ? "right" : "left";
    const wide = ctx.measureText(mark.label).width + 8 * ratio;
    const from = isRight ? x - wide : x;
    let row = 0;
    while (rows[row]?.some((other, i, ends) => i % 2 === 0 && from < ends[i + 1]! && other < from + wide)) {
      row++;
    }
    (rows[row] ??= []).push(from, from + wide);
    ctx.fillText(mark.label, x + (isRight ? -4 : 4) * ratio, u.bbox.top + (11 + GAP * row) * ratio);
  }
  ctx.restore();
}
