// Scatter plot with a colour and a shape per outcome; the keyboard moves along x.
import { useEffect, useRef, useState } from "preact/hooks";
import { color, cssValue } from "../colors";
import { number, short } from "../numbers";

export type Point = [number, number, string, string];

interface Props {
  points: Point[];
  x: string;
  y: string;
  onPick: (id: string) => void;
}

const HEIGHT = 320;
const LEFT = 52;
const BOTTOM = 36;

/** @param least step between two: 1 where all values are whole */
function ticks(low: number, high: number, most: number, least: number): number[] {
  const raw = Math.max(least, (high - low) / most || 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((d) => d * power >= raw) ?? 10);
  const all: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    all.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  }
  return all;
}

export function form(state: string, states: string[]): number {
  return Math.max(0, states.indexOf(state));
}

function draw(context: CanvasRenderingContext2D, look: number, x: number, y: number, size: number) {
  context.beginPath();
  if (look % 5 === 0) {
    context.arc(x, y, size, 0, 7);
  } else if (look % 5 === 1) {
    context.rect(x - size, y - size, 2 * size, 2 * size);
  } else if (look % 5 === 2) {
    context.moveTo(x, y - size * 1.3);
    context.lineTo(x + size * 1.2, y + size);
    context.lineTo(x - size * 1.2, y + size);
    context.closePath();
  } else if (look % 5 === 3) {
    context.moveTo(x, y - size * 1.4);
    context.lineTo(x + size * 1.4, y);
    context.lineTo(x, y + size * 1.4);
    context.lineTo(x - size * 1.4, y);
    context.closePath();
  } else {
    context.rect(x - size * 1.4, y - size * 0.5, size * 2.8, size);
  }
  context.stroke();
}

/**
 * Where a value is drawn: whole numbers by up to a third, each rollout always by the same amount, so that equal ones do
 * not cover each other.
 */
export function jittered(value: number, id: string, salt: number, width: number): number {
  let hash = 2166136261 + salt;
  for (let i = 0; i < id.length; i++) {
    hash = Math.imul(hash ^ id.charCodeAt(i), 16777619);
  }
  hash = Math.imul(hash ^ (hash >>> 15), 2246822519);
  return value + (((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32 - 0.5) * width;
}

/**
 * Jitter range: two thirds of the step between whole numbers, a fortieth of the range for few distinct values, 0 for
 * many.
 */
export function jitter(values: number[]): number {
  const all = new Set(values);
  if (all.size < 1 || all.size === values.length) {
    return 0;
  }
  const range = values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
  return [...all].every(Number.isInteger) && all.size > 2 ? 2 / 3 : all.size <= 12 ? (range || 1) / 20 : 0;
}

export function Scatter({ points, x, y, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [width, setWidth] = useState(600);
  const exact = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const apart = [jitter(exact.map((p) => p[0])), jitter(exact.map((p) => p[1]))] as const;
  const sorted = exact.map((p): Point => [jittered(p[0], p[3], 1, apart[0]), jittered(p[1], p[3], 2, apart[1]), p[2], p[3]]);
  const states = [...new Set(points.map((p) => p[2]))].sort();
  const xs = sorted.map((p) => p[0]);
  const ys = sorted.map((p) => p[1]);
  const least = (values: number[]) => (values.every(Number.isInteger) ? 1 : 0);
  const leastX = least(exact.map((p) => p[0]));
  const leastY = least(exact.map((p) => p[1]));
  const range = (values: number[]): [number, number] => {
    const low = values.length ? values.reduce((a, b) => Math.min(a, b)) : 0;
    const high = values.length ? values.reduce((a, b) => Math.max(a, b)) : 1;
    const pad = low === high ? Math.max(least(values), Math.abs(low) * 0.1) || 1 : (high - low) * 0.04;
    return [low - pad, high + pad];
  };
  const [x0, x1] = range(xs);
  const [y0, y1] = range(ys);
  const px = (v: number) => LEFT + ((v - x0) / (x1 - x0)) * (width - LEFT - 12);
  const py = (v: number) => HEIGHT - BOTTOM - ((v - y0) / (y1 - y0)) * (HEIGHT - BOTTOM - 10);

  useEffect(() => {
    const element = canvas.current;
    if (!element) {
      return;
    }
    const observer = new ResizeObserver(() => setWidth(element.clientWidth || 600));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) {
      return;
    }
    const paint = () => {
      element.width = width * devicePixelRatio;
      element.height = HEIGHT * devicePixelRatio;
      context.scale(devicePixelRatio, devicePixelRatio);
      context.font = "12px system-ui, sans-serif";
      context.lineWidth = 1;
      context.strokeStyle = cssValue("--grid");
      context.fillStyle = cssValue("--muted");
      context.textAlign = "center";
      for (const tick of ticks(x0, x1, width < 500 ? 4 : 8, leastX)) {
        context.beginPath();
        context.moveTo(px(tick), 10);
        context.lineTo(px(tick), HEIGHT - BOTTOM);
        context.stroke();
        context.fillText(short(tick), px(tick), HEIGHT - BOTTOM + 15);
      }
      context.fillText(x, LEFT + (width - LEFT) / 2, HEIGHT - 4);
      context.textAlign = "right";
      for (const tick of ticks(y0, y1, 5, leastY)) {
        context.beginPath();
        context.moveTo(LEFT, py(tick));
        context.lineTo(width - 12, py(tick));
        context.stroke();
        context.fillText(short(tick), LEFT - 6, py(tick) + 4);
      }
      context.lineWidth = 1.2;
      context.globalAlpha = sorted.length > 500 ? 0.55 : 0.9;
      for (const point of sorted) {
        const look = form(point[2], states);
        context.strokeStyle = color(look);
        draw(context, look, px(point[0]), py(point[1]), 3);
      }
      context.globalAlpha = 1;
      const chosen = at === null ? undefined : sorted[at];
      if (chosen) {
        context.strokeStyle = cssValue("--text");
        context.lineWidth = 2;
        context.beginPath();
        context.arc(px(chosen[0]), py(chosen[1]), 8, 0, 7);
        context.stroke();
      }
    };
    paint();
    addEventListener("themechange", paint);
    return () => removeEventListener("themechange", paint);
  });

  const nearest = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    let best = -1;
    let least = 400;
    sorted.forEach((p, i) => {
      const d = (px(p[0]) - event.clientX + box.left) ** 2 + (py(p[1]) - event.clientY + box.top) ** 2;
      if (d < least) {
        least = d;
        best = i;
      }
    });
    return best < 0 ? null : best;
  };
  const key = (event: KeyboardEvent) => {
    const step: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 };
    if (event.key in step) {
      setAt(Math.max(0, Math.min(sorted.length - 1, (at ?? 0) + step[event.key]!)));
      event.preventDefault();
    } else if (event.key === "Enter" && at !== null && sorted[at]) {
      onPick(sorted[at]![3]);
    }
  };
  const chosen = at === null ? undefined : exact[at];
  return (
    <figure>
      <p class="readout">
        {states.map((state, i) => (
          <span key={state}>
            <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true" fill="none" stroke={color(i)} stroke-width="1.6">
              {i % 5 === 0 ? <circle r="4" /> : i % 5 === 1 ? <rect x="-4" y="-4" width="8" height="8" /> : i % 5 === 2 ? <path d="M0-5 5 4H-5Z" /> : i % 5 === 3 ? <path d="M0-5 5 0 0 5-5 0Z" /> : <rect x="-5" y="-2" width="10" height="4" />}
            </svg>{" "}
            {state}
          </span>
        ))}
        <span class="where">{chosen ? `${chosen[3]}: ${x} ${number(chosen[0])}, ${y} ${number(chosen[1])}` : ""}</span>
      </p>
      <canvas
        ref={canvas}
        class="plot"
        style={{ height: `${HEIGHT}px` }}
        tabIndex={0}
        role="img"
        aria-label={`${points.length} rollouts, ${y} over ${x}. Arrow keys walk along them, Enter opens one.${chosen ? ` ${chosen[3]}` : ""}`}
        onKeyDown={key}
        onMouseMove={(e) => setAt(nearest(e))}
        onMouseLeave={() => setAt(null)}
        onClick={(e) => {
          const found = nearest(e);
          if (found !== null) {
            onPick(sorted[found]![3]);
          }
        }}
      />
      <p class="about">
        {y} over {x}
        {apart[0] + apart[1] > 0 ? "; equal values are drawn next to each other" : ""}
      </p>
    </figure>
  );
}
