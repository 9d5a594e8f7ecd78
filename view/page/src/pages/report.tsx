// A report: question and answer first, then tables and charts, over the report model shared by all commands.
import { useState } from "preact/hooks";
import { Chart, type Line } from "../parts/chart";
import { Copy, Mark, Section, type Health } from "../parts/basics";
import { short, type Maybe } from "../numbers";

interface Format {
  kind: "TEXT" | "COUNT" | "DECIMALS" | "SIGNIFICANT" | "PERCENT";
  digits: number;
}

interface Axis {
  name: string;
  unit: string;
  log: boolean;
  from?: number;
  to?: number;
}

interface Series {
  name: string;
  style: "LINE" | "POINTS" | "REFERENCE";
  x: Maybe[];
  y: Maybe[];
}

interface ChartOf {
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  marks: { at: number; what: string }[];
}

interface TableOf {
  title: string;
  columns: { key: string; name: string; unit: string; format: Format }[];
  rows: (string | number | boolean | null)[][];
}

export interface SectionOf {
  title: string;
  closed: boolean;
  notes: string[];
  tables: TableOf[];
  charts: ChartOf[];
  listing: string;
}

export interface ReportOf {
  title: string;
  conclusion?: { asked: string; answer: string; health: string; figure?: { name: string; shown: string }; sure: string };
  verdict: string[];
  view?: string;
  origin?: { command: string; commit: string; machine: string; processors: number; jvm: string; kafka?: string; started_at: string; load_average: number };
  sections: SectionOf[];
}

const HEALTH: Record<string, Health> = { OK: "ok", LOOK: "look", ILL: "ill", NONE: "none" };

function shown(value: string | number | boolean | null, format: Format): string {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  switch (format.kind) {
    case "COUNT":
      return value.toLocaleString("en-US");
    case "DECIMALS":
      return value.toFixed(format.digits);
    case "SIGNIFICANT":
      return value === 0 ? "0" : Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4 ? value.toExponential(Math.max(0, format.digits - 1)) : String(Number(value.toPrecision(format.digits)));
    case "PERCENT":
      return `${(100 * value).toFixed(format.digits)} %`;
    default:
      return String(value);
  }
}

function titled(axis: Axis): string {
  return axis.name && axis.unit ? `${axis.name}, ${axis.unit}` : axis.name || axis.unit;
}

/** The conclusion in a line, with its number. */
export function ReportVerdict({ of }: { of: NonNullable<ReportOf["conclusion"]> }) {
  const health = HEALTH[of.health] ?? "none";
  return (
    <div class={`verdict ${health}`}>
      <p class="about">{of.asked}</p>
      <h2>
        <Mark health={health} /> {of.answer}
      </h2>
      {of.figure && (
        <p>
          {of.figure.name}: <b>{of.figure.shown}</b>
        </p>
      )}
      {of.sure && <p class="about">How sure: {of.sure}.</p>}
    </div>
  );
}

function ReportTable({ of }: { of: TableOf }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={of.title || "table"}>
      <table class="list report">
        {of.title && <caption>{of.title}</caption>}
        <thead>
          <tr>
            {of.columns.map((column) => (
              <th scope="col" key={column.key} class={column.format.kind === "TEXT" ? "" : "num"}>
                {column.name}
                {column.unit && <span class="unit">{column.name ? ", " : ""}{column.unit}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.rows.map((row, r) => (
            <tr key={r}>
              {row.map((value, c) => {
                const format = of.columns[c]!.format;
                const side = format.kind === "TEXT" ? "" : "num";
                return c === 0 ? (
                  <th scope="row" class={side} key={c}>
                    {shown(value, format)}
                  </th>
                ) : (
                  <td class={side} key={c}>
                    {shown(value, format)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Merges the x values of all series; a series without a value at one of them has no gap there. */
function aligned(of: ChartOf, names: string[]): { x: number[]; lines: Line[] } {
  const holds = (axis: Axis, value: Maybe): value is number => value !== null && value !== undefined && (!axis.log || value > 0);
  const places = new Set<number>();
  for (const series of of.series) {
    for (const x of series.x) {
      if (holds(of.x, x)) places.add(x);
    }
  }
  const x = [...places].sort((a, b) => a - b);
  const at = new Map(x.map((value, i) => [value, i]));
  const lines = of.series.map((series): Line => {
    const values: Maybe[] = new Array(x.length).fill(undefined);
    series.x.forEach((place, i) => {
      if (holds(of.x, place)) {
        const y = series.y[i];
        values[at.get(place)!] = holds(of.y, y) ? y : null;
      }
    });
    return {
      label: series.name,
      values,
      look: Math.max(0, names.indexOf(series.name)),
      style: series.style === "POINTS" ? "points" : series.style === "REFERENCE" ? "reference" : "line",
      sparse: true,
    };
  });
  return { x, lines };
}

function ReportChart({ of, names, group }: { of: ChartOf; names: string[]; group: string }) {
  const { x, lines } = aligned(of, names);
  return (
    <Chart
      title={of.title}
      about={titled(of.y)}
      x={x}
      xLabel={of.x.name || "at"}
      xTitle={titled(of.x)}
      xLog={of.x.log}
      lines={lines}
      marks={of.marks.map((mark) => ({ label: mark.what, at: mark.at }))}
      log={of.y.log}
      from={of.y.from}
      to={of.y.to}
      format={short}
      height={240}
      group={of.x.name ? `${group}${of.x.name}` : undefined}
    />
  );
}

export function ReportSection({ of, names, group = "report" }: { of: SectionOf; names: string[]; group?: string }) {
  const body = (
    <>
      {of.tables.map((table, i) => (
        <ReportTable of={table} key={i} />
      ))}
      {of.notes.length > 0 && (
        <ul class="notes">
          {of.notes.map((note, i) => (
            <li key={i}>{note}</li>
          ))}
        </ul>
      )}
      {of.charts.length > 0 && (
        <div class="charts">
          {of.charts.map((chart, i) => (
            <ReportChart of={chart} names={names} group={group} key={i} />
          ))}
        </div>
      )}
      {of.listing && (
        <div class="listing">
          <Copy text={of.listing} />
          <pre tabIndex={0}>{of.listing}</pre>
        </div>
      )}
    </>
  );
  return of.closed ? <Closed title={of.title || "Details"}>{body}</Closed> : of.title ? <Section title={of.title}>{body}</Section> : <section>{body}</section>;
}

/** Drawn when opened: a chart in a closed box has no width. */
function Closed({ title, children }: { title: string; children: any }) {
  const [open, set] = useState(false);
  return (
    <details onToggle={(event) => set((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{title}</summary>
      {open && children}
    </details>
  );
}

/** Names of series in the order of their first chart: a name has the same style everywhere. */
export function seriesNames(sections: SectionOf[]): string[] {
  return [...new Set(sections.flatMap((s) => s.charts).flatMap((c) => c.series).filter((s) => s.style !== "REFERENCE").map((s) => s.name))];
}

export function ReportPage({ report }: { report: ReportOf }) {
  const names = seriesNames(report.sections);
  return (
    <>
      <h1>{report.title}</h1>
      {report.conclusion && <ReportVerdict of={report.conclusion} />}
      {report.verdict.length > 0 && (
        <ul class="notes">
          {report.verdict.map((sentence, i) => (
            <li key={i}>{sentence}</li>
          ))}
        </ul>
      )}
      {report.view && (
        <p class="note">
          The run itself, rollout by rollout: <code>{report.view}</code> <Copy text={report.view} />
        </p>
      )}
      {report.sections.map((section, i) => (
        <ReportSection of={section} names={names} key={i} />
      ))}
      {report.origin && <Origin of={report.origin} />}
    </>
  );
}

function Origin({ of }: { of: NonNullable<ReportOf["origin"]> }) {
  const parts = [
    of.started_at,
    `${of.machine}, ${of.processors} processors${of.load_average < 0 ? "" : `, load average ${of.load_average.toFixed(1)}`}`,
    of.jvm,
    of.kafka ? `Kafka ${of.kafka}` : "",
    `commit ${of.commit}`,
  ];
  return (
    <section class="origin">
      <p>
        Made by <code>{of.command}</code> <Copy text={of.command} />
      </p>
      <p class="about">{parts.filter((part) => part).join(" · ")}</p>
    </section>
  );
}
