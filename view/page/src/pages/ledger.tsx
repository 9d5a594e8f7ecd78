import { sankey, sankeyLinkHorizontal } from "d3-sankey";
import { useState } from "preact/hooks";
import { useAnswer } from "../api";
import { color } from "../colors";
import { Bars, Copy, Mark, Problem, Section } from "../parts/basics";
import { clock, count, number, percent, share, tenths } from "../numbers";
import { address } from "../route";
import type { PageProps } from "../main";

interface End {
  state: string;
  reason: string | null;
  rollouts: number;
  reward_mean: number;
  reward_sd: number;
  tokens_mean: number;
  tokens_sd: number;
  tokens: number;
  trained_tokens: number;
  oldest_ms: number;
}

/** Widths of a flow label: of a character, and in characters of the count with its share. */
const CHARACTER = 7;
const SHARE = 16;

const LOOKS: Record<string, number> = { trained: 0, masked: 1, dropped: 4, refused: 3, "waits for its step": 2, "waits for its batch": 5, "waits to be scored and joined": 7 };

/** The share of each state and of each of its reasons; a state's is the sum of its reasons', and all states' sum to 100 %. */
export function ledgerShares(ends: { state: string; reason: string | null; rollouts: number }[]): Map<string, string> {
  const parts = tenths(ends.map((end) => end.rollouts));
  const sums = new Map<string, [number, number]>();
  ends.forEach((end, i) => {
    for (const key of end.reason ? [end.state, `${end.state}:${end.reason}`] : [end.state]) {
      const [part, rollouts] = sums.get(key) ?? [0, 0];
      sums.set(key, [part + parts[i]!, rollouts + end.rollouts]);
    }
  });
  sums.set("generated", [1000, 1]);
  return new Map([...sums].map(([key, [part, rollouts]]) => [key, percent(part, rollouts)]));
}

export function LedgerPage({ run, news, facts }: PageProps) {
  const path = `runs/${encodeURIComponent(run)}`;
  const answer = useAnswer(`${path}/ledger`, Math.floor((news.index?.read ?? 0) / 20_000), news.index?.whole, Math.floor(news.steps / 8));
  const letters = useAnswer(`${path}/letters`, news.state);
  const ends: End[] = answer.data?.ends ?? [];
  const all = ends.reduce((sum, end) => sum + end.rollouts, 0);
  const waiting = ends.filter((end) => end.state.startsWith("waits"));
  return (
    <>
      <h1>Ledger</h1>
      <Problem text={answer.problem} />
      {answer.data && all === 0 && <p class="none">No rollout in the index yet.</p>}
      {all > 0 && (
        <>
          <p class="about">
            {count(all)} rollouts by the index{answer.data.redriven > 0 ? `, without the first records of ${count(answer.data.redriven)} that were redriven` : ""}
            {news.index && !news.index.whole ? "; the index is still being filled, so rollouts that it lacks count as waiting" : ""}.
          </p>
          <Check path={path} facts={facts} />
          <Flow ends={ends} run={run} />
          <div class="narrow">
            <Bars label="what became of the rollouts" most={all} bars={ends.map((end) => ({ label: end.reason ? `${end.state}: ${end.reason}` : end.state, value: end.rollouts, text: ledgerShares(ends).get(end.reason ? `${end.state}:${end.reason}` : end.state)!, look: LOOKS[end.state] ?? 2 }))} />
          </div>
          <Section title="Rollouts in flight">
            {waiting.length === 0 ? (
              <p>Nothing.</p>
            ) : (
              <div class="scroll">
                <table class="list">
                  <thead>
                    <tr>
                      <th scope="col">where</th>
                      <th scope="col" class="num">
                        rollouts
                      </th>
                      <th scope="col">the oldest was sampled</th>
                    </tr>
                  </thead>
                  <tbody>
                    {waiting.map((end) => (
                      <tr key={end.state}>
                        <th scope="row">
                          <a href={address(run, "rollouts", { state: end.state })}>{end.state}</a>
                        </th>
                        <td class="num">{count(end.rollouts)}</td>
                        <td>{clock(end.oldest_ms)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Section>
          <Survivors ends={ends} data={answer.data} run={run} />
        </>
      )}
      <Letters data={letters.data} problem={letters.problem} run={run} />
    </>
  );
}

function Check({ path, facts }: { path: string; facts: any }) {
  const [asked, ask] = useState(0);
  const answer = useAnswer(asked > 0 ? `${path}/account` : null, asked);
  if (facts.archived) {
    return <p class="about">An archive has only the index. './millrace import' makes a log whose ledger can be checked.</p>;
  }
  return (
    <p>
      <button type="button" onClick={() => ask((n) => n + 1)} disabled={asked > 0 && answer.isAsking}>
        {asked > 0 && answer.isAsking ? "checking…" : "check the ledger (reads the whole log)"}
      </button>{" "}
      <Problem text={answer.problem} />
      {answer.data && asked > 0 && (
        <span>
          <Mark health={answer.data.adds_up ? "ok" : "ill"} /> {answer.data.adds_up ? `It adds up: ${count(answer.data.generated)} generated, ${count(answer.data.trained)} trained on.` : `It does not add up: ${answer.data.sentences.join(" ")}`}{" "}
          {answer.data.gaps.join(" ")}
        </span>
      )}
    </p>
  );
}

/** From generated rollouts to their outcomes, widths by counts. */
function Flow({ ends, run }: { ends: End[]; run: string }) {
  const width = 900;
  const nodes: { name: string; key: string; look: number; href: string }[] = [{ name: "generated", key: "generated", look: 6, href: address(run, "rollouts") }];
  const links: { source: number; target: number; value: number; look: number }[] = [];
  const node = (key: string, name: string, look: number, href: string) => {
    let at = nodes.findIndex((n) => n.key === key);
    if (at < 0) {
      at = nodes.push({ key, name, look, href }) - 1;
    }
    return at;
  };
  const states = [...new Set(ends.map((end) => end.state))];
  for (const state of states) {
    const of = ends.filter((end) => end.state === state);
    const look = LOOKS[state] ?? 2;
    const at = node(state, state, look, address(run, "rollouts", { state }));
    links.push({ source: 0, target: at, value: of.reduce((n, end) => n + end.rollouts, 0), look });
    for (const end of of) {
      if (end.reason) {
        links.push({ source: at, target: node(`${state}:${end.reason}`, end.reason, look, address(run, "rollouts", { state, reason: end.reason })), value: end.rollouts, look });
      }
    }
  }
  const rows = nodes.length - 1;
  const room = 24 + CHARACTER * Math.max(...nodes.map((n) => n.name.length + SHARE)); // for the words behind the last bars
  const height = Math.max(160, 46 * rows);
  const layout = sankey<any, any>()
    .nodeWidth(12)
    .nodePadding(26)
    .nodeSort(null as any)
    .extent([
      [2, 16],
      [width - room, height - 8],
    ])({ nodes: nodes.map((n) => ({ ...n })), links: links.map((l) => ({ ...l })) });
  const all = layout.nodes[0].value as number;
  const shares = ledgerShares(ends);
  return (
    <figure>
      <div class="scroll sankey">
        <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Of ${all} rollouts ${states.map((s) => `${ends.filter((e) => e.state === s).reduce((n, e) => n + e.rollouts, 0)} ${s}`).join(", ")}`}>
          {layout.links.map((link: any, i: number) => (
            <path key={i} d={sankeyLinkHorizontal()(link) ?? ""} fill="none" stroke={color(link.look)} stroke-opacity="0.35" stroke-width={Math.max(1.5, link.width)} />
          ))}
          {layout.nodes.map((n: any) => (
            <a key={n.key} href={n.href}>
              <rect x={n.x0} y={n.y0} width={n.x1 - n.x0} height={Math.max(2, n.y1 - n.y0)} fill={color(n.look)} />
              <text x={n.x1 + 6} y={(n.y0 + n.y1) / 2} dominant-baseline="middle">
                {n.name} <tspan class="share">{`${count(n.value)}, ${shares.get(n.key)}`}</tspan>
              </text>
            </a>
          ))}
        </svg>
      </div>
    </figure>
  );
}

/** Compares the rollouts left out with those trained on. */
function Survivors({ ends, data, run }: { ends: End[]; data: any; run: string }) {
  const trained = ends.find((end) => end.state === "trained");
  const gone = ends.filter((end) => ["masked", "dropped", "refused"].includes(end.state));
  const rows = [...(trained ? [trained] : []), ...gone];
  const notable = trained
    ? gone
        .filter((end) => end.rollouts >= 10)
        .flatMap((end) => [
          [Math.abs(end.reward_mean - trained.reward_mean) / Math.max(1e-9, trained.reward_sd), `${name(end)} have a mean reward of ${number(end.reward_mean)}, those trained on ${number(trained.reward_mean)}.`] as const,
          [Math.abs(end.tokens_mean - trained.tokens_mean) / Math.max(1e-9, trained.tokens_sd), `${name(end)} are ${number(end.tokens_mean, 1)} tokens long on average, those trained on ${number(trained.tokens_mean, 1)}.`] as const,
        ])
        .filter(([size]) => size > 0.25)
        .sort((a, b) => b[0] - a[0])
        .slice(0, 3)
    : [];
  return (
    <Section title="Survivor bias" about="Compares the rollouts left out with those trained on. Where they differ, the gradient follows another distribution than the sampler's.">
      {trained && gone.length === 0 && <p>Nothing was left out.</p>}
      {trained && gone.length > 0 && <p>{notable.length === 0 ? "The rollouts left out match those trained on, in reward and length, within a quarter of a standard deviation." : notable.map(([, text]) => text).join(" ")}</p>}
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">rollouts</th>
              <th scope="col" class="num">
                count
              </th>
              <th scope="col" class="num">
                mean reward ± sd
              </th>
              <th scope="col" class="num">
                tokens ± sd
              </th>
              <th scope="col" class="num">
                tokens trained
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((end) => (
              <tr key={`${end.state}${end.reason}`}>
                <th scope="row">
                  <a href={address(run, "rollouts", { state: end.state, reason: end.reason })}>{end.reason ? `${end.state}: ${end.reason}` : end.state}</a>
                </th>
                <td class="num">{count(end.rollouts)}</td>
                <td class="num">
                  {number(end.reward_mean)} ± {number(end.reward_sd, 2)}
                </td>
                <td class="num">
                  {number(end.tokens_mean, 1)} ± {number(end.tokens_sd, 1)}
                </td>
                <td class="num">{end.tokens > 0 ? share(end.trained_tokens / end.tokens) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="charts">
        <Spread title="Rewards" histogram={data.reward_histogram} />
        <Spread title="Lengths, tokens of the policy" histogram={data.tokens_histogram} />
      </div>
    </Section>
  );
}

function name(end: End): string {
  return `Those ${end.state}${end.reason ? ` (${end.reason})` : ""}`;
}

function Spread({ title, histogram }: { title: string; histogram: any }) {
  const bins = new Map<number, { trained: number; out: number }>();
  let trained = 0;
  let out = 0;
  for (const [bin, state, n] of histogram?.bins ?? []) {
    const one = bins.get(bin) ?? { trained: 0, out: 0 };
    if (state === "trained") {
      one.trained += n;
      trained += n;
    } else if (!state.startsWith("waits")) {
      one.out += n;
      out += n;
    }
    bins.set(bin, one);
  }
  if (trained === 0 || out === 0) {
    return null;
  }
  const rows = [...bins.entries()].sort(([a], [b]) => a - b);
  const trainedParts = tenths(rows.map(([, r]) => r.trained));
  const outParts = tenths(rows.map(([, r]) => r.out));
  const most = Math.max(...rows.map(([, r]) => Math.max(r.trained / trained, r.out / out)));
  return (
    <figure>
      <figcaption>
        <h3>{title}</h3>
        <p class="about">Share of each kind: upper bar trained on, lower bar left out.</p>
      </figcaption>
      <Bars
        label={title}
        most={most}
        bars={rows.flatMap(([bin, r], i) => [
          { label: number(histogram.from + bin * histogram.width, 2), value: r.trained / trained, text: percent(trainedParts[i]!, r.trained), look: 0 },
          { label: " ", value: r.out / out, text: percent(outParts[i]!, r.out), look: 1 },
        ])}
      />
    </figure>
  );
}

function Letters({ data, problem, run }: { data: any; problem: string; run: string }) {
  const letters: any[] = data?.letters ?? [];
  const command = (rest: string) => `./millrace dead-letters redrive ${rest} ${data.options}`;
  return (
    <Section title="Dead letters" about="Refused records. A redrive puts a record back unchanged, once. This page only copies the command.">
      <Problem text={problem} />
      {data && letters.length === 0 && <p>None.</p>}
      {(data?.reasons ?? []).map((reason: any) => (
        <p key={reason.reason}>
          <b>{reason.reason}</b>: {count(reason.refused)} refused{reason.redriven > 0 ? `, ${count(reason.redriven)} redriven` : ""} {reason.refused > 0 && <Copy text={command(`--reason ${reason.reason}`)} label="copy redrive command" />}
        </p>
      ))}
      {letters.length > 0 && (
        <div class="scroll">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">letter</th>
                <th scope="col">when</th>
                <th scope="col">why</th>
                <th scope="col">of</th>
                <th scope="col">redrive</th>
              </tr>
            </thead>
            <tbody>
              {letters.map((letter) => (
                <tr key={letter.place}>
                  <th scope="row">{letter.letter}</th>
                  <td>{clock(letter.written_ms)}</td>
                  <td>
                    <b>{letter.reason}</b>
                    {letter.field ? ` (${letter.field})` : ""}: {letter.message}
                  </td>
                  <td>
                    {letter.rollout ? <a href={address(run, "chain", { id: letter.rollout })}>{letter.rollout}</a> : ""} <code>{letter.source}</code>
                  </td>
                  <td>{letter.redriven >= 0 ? `redriven to offset ${letter.redriven}` : <Copy text={command(String(letter.letter))} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

