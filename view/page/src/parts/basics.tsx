import type { ComponentChildren } from "preact";
import { color } from "../colors";
import { percent, tenths } from "../numbers";

export type Health = "ok" | "look" | "ill" | "none";
const MARKS: Record<Health, string> = { ok: "●", look: "▲", ill: "✖", none: "○" };
const WORDS: Record<Health, string> = { ok: "fine", look: "worth a look", ill: "needs attention", none: "not known" };

/** A colour, a shape and a word, so that none is needed alone. */
export function Mark({ health }: { health: Health }) {
  return (
    <span class={`mark ${health}`} role="img" aria-label={WORDS[health]} title={WORDS[health]}>
      {MARKS[health]}
    </span>
  );
}

export function Card(props: { title: string; value: ComponentChildren; under?: ComponentChildren; health?: Health; about?: string }) {
  return (
    <div class="card" title={props.about}>
      <h3>
        {props.health && <Mark health={props.health} />} {props.title}
      </h3>
      <p class="big">{props.value}</p>
      <p class="under">{props.under}</p>
    </div>
  );
}

export function Section(props: { title: string; about?: ComponentChildren; children: ComponentChildren; id?: string }) {
  return (
    <section id={props.id}>
      <h2>{props.title}</h2>
      {props.about && <p class="about">{props.about}</p>}
      {props.children}
    </section>
  );
}

export interface Bar {
  label: string;
  value: number;
  text: string;
  look?: number;
}

/** Horizontal bars over one scale, each with its number in words. */
export function Bars({ bars, most, label }: { bars: Bar[]; most?: number; label: string }) {
  const end = most ?? Math.max(...bars.map((bar) => bar.value), 1e-12);
  return (
    <table class="bars" aria-label={label}>
      <tbody>
        {bars.map((bar, i) => (
          <tr key={i}>
            <th scope="row">{bar.label}</th>
            <td class="track">
              <span style={{ width: `${Math.max(0, Math.min(100, (100 * bar.value) / end))}%`, background: color(bar.look ?? 0) }} />
            </td>
            <td class="num">{bar.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A histogram of whole numbers: bars side by side. */
export function Histogram({ rows, label, xLabel }: { rows: [number, number][]; label: string; xLabel: string }) {
  const all = rows.reduce((sum, [, n]) => sum + n, 0);
  if (all === 0) {
    return <p class="none">Nothing to count yet.</p>;
  }
  const parts = tenths(rows.map(([, n]) => n));
  return (
    <figure class="histogram">
      <figcaption>
        <h3>{label}</h3>
      </figcaption>
      <Bars label={label} bars={rows.map(([x, n], i) => ({ label: `${x}`, value: n, text: percent(parts[i]!, n), look: 0 }))} />
      <p class="about">{xLabel}</p>
    </figure>
  );
}

export function Problem({ text }: { text: string }) {
  return text ? (
    <p class="problem" role="alert">
      {text}
    </p>
  ) : null;
}

export function Copy({ text, label = "copy" }: { text: string; label?: string }) {
  return (
    <button
      type="button"
      class="copy"
      title={text}
      onClick={(event) => {
        const button = event.currentTarget;
        const said = (word: string) => {
          button.textContent = word;
          setTimeout(() => (button.textContent = label), 1500);
        };
        navigator.clipboard.writeText(text).then(
          () => said("copied"),
          () => said("not allowed"),
        );
      }}
    >
      {label}
    </button>
  );
}
