// Numbers as people read them. What was not computed is a dash.
export type Maybe = number | null | undefined;

export function number(value: Maybe, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return "–";
  }
  if (Number.isInteger(value) && Math.abs(value) < 1e6) {
    return String(value);
  }
  const size = Math.abs(value);
  if (size >= 1e5 || (size < 1e-4 && size > 0)) {
    return value.toExponential(2);
  }
  if (size < 10 ** -digits) {
    return String(Number(value.toPrecision(2)));
  }
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : digits);
}

export function count(value: Maybe): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : Math.round(value).toLocaleString("en");
}

export function short(value: Maybe, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return "–";
  }
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9, digits)}G`;
  if (size >= 1e6) return `${trim(value / 1e6, digits)}M`;
  if (size >= 1e4) return `${trim(value / 1e3, digits)}k`;
  if (size > 0 && size < 1e-3) return value.toExponential(Math.max(0, digits - 3));
  return trim(value, digits);
}

function trim(value: number, digits = 3): string {
  return String(Number(value.toPrecision(digits)));
}

/** Numbers along an axis, with as many digits as it takes to tell them apart. */
export function ticks(values: (number | null)[]): string[] {
  const there = values.filter((value) => value !== null);
  let digits = 3;
  while (digits < 9 && new Set(there.map((value) => short(value, digits))).size < there.length) {
    digits++;
  }
  return values.map((value) => (value === null ? "" : short(value, digits)));
}

export function share(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return "–";
  }
  const percent = 100 * value;
  return `${percent > 0 && percent < 0.1 ? "<0.1" : percent.toFixed(percent < 10 && percent > 0 ? 1 : 0)} %`;
}

/** Parts of a whole in tenths of a per cent that sum to 1000: what rounding leaves goes to the largest remainders. */
export function tenths(parts: number[]): number[] {
  const whole = parts.reduce((a, b) => a + b, 0);
  if (whole <= 0) {
    return parts.map(() => 0);
  }
  const exact = parts.map((part) => (1000 * part) / whole);
  const rounded = exact.map(Math.floor);
  const left = 1000 - rounded.reduce((a, b) => a + b, 0);
  const order = exact.map((_, i) => i).sort((a, b) => exact[b]! - rounded[b]! - (exact[a]! - rounded[a]!) || a - b);
  for (const i of order.slice(0, left)) {
    rounded[i]!++;
  }
  return rounded;
}

/** Tenths of a per cent in words; a part that rounds to nothing is not called nothing. */
export function percent(tenths: number, part: number): string {
  return tenths === 0 && part > 0 ? "<0.1 %" : `${(tenths / 10).toFixed(1)} %`;
}

export function seconds(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return "–";
  }
  if (Math.abs(value) < 0.9995) return `${Math.round(1000 * value)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${value.toFixed(0)} s`;
  if (value < 7200) return `${(value / 60).toFixed(0)} min`;
  if (value < 172_800) return `${(value / 3600).toFixed(1)} h`;
  return `${(value / 86_400).toFixed(0)} days`;
}

export function bytes(value: Maybe): string {
  if (value === null || value === undefined) return "–";
  if (value >= 1e9) return `${trim(value / 1e9)} GB`;
  if (value >= 1e6) return `${trim(value / 1e6)} MB`;
  if (value >= 1e3) return `${trim(value / 1e3)} kB`;
  return `${value} B`;
}

export function clock(ms: Maybe): string {
  return ms === null || ms === undefined ? "–" : new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}

export function mean(values: Maybe[]): number | null {
  const there = values.filter((v): v is number => v !== null && v !== undefined && Number.isFinite(v));
  return there.length === 0 ? null : there.reduce((a, b) => a + b, 0) / there.length;
}
