import { useState } from "preact/hooks";
import { useAnswer } from "../api";
import { Problem, Section } from "../parts/basics";
import { Scatter } from "../parts/scatter";
import { Tokens } from "../parts/tokens";
import { count, number, seconds } from "../numbers";
import { address, changed } from "../route";
import type { PageProps } from "../main";

const COLUMNS: [string, string][] = [
  ["ordinal", "rollout"],
  ["state", "outcome"],
  ["text", "prompt → response"],
  ["reward", "reward"],
  ["advantage", "advantage"],
  ["policy_tokens", "tokens"],
  ["staleness", "staleness"],
  ["ratio", "mean ratio"],
  ["version", "version"],
  ["batch", "batch"],
  ["seconds", "sampled in"],
  ["finish", "ended by"],
];
const NUMBERS: [string, string][] = [
  ["version", "version"],
  ["policy_tokens", "tokens of the policy"],
  ["tokens", "response tokens"],
  ["reward", "reward"],
  ["staleness", "staleness"],
  ["ratio", "mean log ratio"],
  ["advantage", "advantage"],
  ["seconds", "seconds of sampling"],
  ["ordinal", "place in the run"],
];
const FILTERS = ["state", "reason", "generator", "group", "batch", "reward.from", "reward.to", "policy_tokens.from", "policy_tokens.to", "staleness.from", "version.from", "version.to", "contains"];
const SIZE = 50;

export function RolloutsPage(props: PageProps) {
  const id = props.route.query.get("id");
  return id === null ? <List {...props} /> : <One {...props} id={id} />;
}

function query(params: URLSearchParams, names: string[]): string {
  const chosen = new URLSearchParams();
  for (const name of names) {
    const value = params.get(name);
    if (value) {
      chosen.set(name, value);
    }
  }
  return chosen.toString();
}

function List({ run, route, news }: PageProps) {
  const path = `runs/${encodeURIComponent(run)}`;
  const params = route.query;
  const offset = Number(params.get("offset") ?? 0);
  const x = params.get("x") ?? "version";
  const y = params.get("y") ?? "reward";
  const when = Math.floor((news.index?.read ?? 0) / 20_000);
  const list = useAnswer(`${path}/rollouts?${query(params, [...FILTERS, "sort", "down", "offset"])}&limit=${SIZE}`, when, news.index?.whole);
  const points = useAnswer(`${path}/points?${query(params, FILTERS)}&x=${x}&y=${y}`, when, news.index?.whole);
  const choices = useAnswer(`${path}/choices`, news.index?.whole);
  const go = (values: Record<string, string | number | null>) => {
    location.hash = changed(route, { offset: null, ...values });
  };
  const states: any[] = choices.data?.states ?? [];
  const field = (name: string, label: string, width = 5) => (
    <label>
      {label} <input style={{ width: `${width}em` }} inputMode="decimal" value={params.get(name) ?? ""} onChange={(e) => go({ [name]: e.currentTarget.value })} />
    </label>
  );
  const rows: any[] = list.data?.rows ?? [];
  const all = list.data?.count ?? 0;
  return (
    <>
      <h1>Rollouts</h1>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>
          outcome{" "}
          <select
            value={`${params.get("state") ?? ""}|${params.get("reason") ?? ""}`}
            onChange={(e) => {
              const [state = "", reason = ""] = e.currentTarget.value.split("|");
              go({ state, reason });
            }}
          >
            <option value="|">all</option>
            {[...new Set(states.map((s) => s.state))].map((state) => (
              <option key={state} value={`${state}|`}>
                {state} ({count(states.filter((s) => s.state === state).reduce((n, s) => n + s.count, 0))})
              </option>
            ))}
            {states
              .filter((s) => s.reason)
              .map((s) => (
                <option key={`${s.state}${s.reason}`} value={`${s.state}|${s.reason}`}>
                  {s.state}: {s.reason} ({count(s.count)})
                </option>
              ))}
          </select>
        </label>
        {field("reward.from", "reward from")}
        {field("reward.to", "to")}
        {field("version.from", "version from", 4)}
        {field("version.to", "to", 4)}
        <label>
          text contains{" "}
          <input
            style={{ width: "10em" }}
            type="search"
            title="Searches the end of the prompt and the beginning of the response, as the index keeps them."
            value={params.get("contains") ?? ""}
            onChange={(e) => go({ contains: e.currentTarget.value })}
          />
        </label>
        {field("policy_tokens.from", "tokens from")}
        {field("policy_tokens.to", "to")}
        {field("staleness.from", "staleness from", 3)}
        {field("batch", "batch", 4)}
        {field("group", "group", 7)}
        <a href={address(run, "rollouts")}>clear</a>
      </form>
      <Problem text={list.problem || points.problem} />
      <details open>
        <summary>
          As points{points.data?.every > 1 ? `, one of every ${points.data.every}` : ""}
        </summary>
        <p class="filters">
          <Choice label="across" value={x} onChange={(v) => go({ x: v })} />
          <Choice label="up" value={y} onChange={(v) => go({ y: v })} />
        </p>
        <Scatter points={points.data?.points ?? []} x={title(x)} y={title(y)} onPick={(id) => (location.hash = address(run, "rollouts", { id }))} />
      </details>
      <p class="about">
        {count(all)} rollouts{all > SIZE ? `, ${count(offset + 1)} to ${count(Math.min(all, offset + SIZE))}` : ""}
        {params.has("sort") ? "" : "; the newest trained ones first"}
        {news.index && !news.index.whole ? "; the index is still being filled" : ""}
      </p>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              {COLUMNS.map(([key, name]) => {
                const isSorted = params.get("sort") === key;
                const down = isSorted && params.get("down") === "1";
                return (
                  <th key={key} scope="col" class={TEXTS.has(key) ? "" : "num"} aria-sort={isSorted ? (down ? "descending" : "ascending") : "none"}>
                    <a href={changed(route, { sort: key, down: isSorted && !down ? "1" : "0", offset: null })}>
                      {name}
                      {isSorted ? (down ? " ↓" : " ↑") : ""}
                    </a>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.place}>
                <th scope="row">
                  <a href={address(run, "rollouts", { id: row.id })}>{row.id}</a>
                </th>
                <td>
                  {row.state}
                  {row.reason ? `: ${row.reason}` : ""}
                </td>
                <td class="said" title={row.text === null ? "" : `${row.prompt_text} → ${row.text}`}>
                  {row.text === null ? "–" : `${ending(row.prompt_text ?? "", 40)} → ${beginning(row.text, 60)}`}
                </td>
                <td class="num">{number(row.reward)}</td>
                <td class="num">{number(row.advantage)}</td>
                <td class="num">{count(row.policy_tokens)}</td>
                <td class="num">{number(row.staleness)}</td>
                <td class="num">{row.ratio === null ? "–" : Math.exp(row.ratio).toFixed(3)}</td>
                <td class="num">{row.oldest_version === row.version ? row.version : `${row.oldest_version}–${row.version}`}</td>
                <td class="num">{row.batch === null ? "–" : count(row.batch)}</td>
                <td class="num">{seconds(row.seconds)}</td>
                <td>{(row.finish ?? "").toLowerCase()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="pager">
        {offset > 0 && <a href={changed(route, { offset: Math.max(0, offset - SIZE) })}>← before</a>} {offset + SIZE < all && <a href={changed(route, { offset: offset + SIZE })}>next →</a>}
      </p>
    </>
  );
}

const TEXTS = new Set(["ordinal", "state", "text", "finish"]);

const line = (text: string) => text.replaceAll(/\s+/g, " ").trim();

/** The first characters of a text on one line. */
export function beginning(text: string, most: number): string {
  const flat = [...line(text)];
  return flat.length > most ? `${flat.slice(0, most - 1).join("")}…` : flat.join("");
}

/** The last characters of a text; a prompt usually ends with its question. */
export function ending(text: string, most: number): string {
  const flat = [...line(text)];
  return flat.length > most ? `…${flat.slice(1 - most).join("")}` : flat.join("");
}

function title(key: string): string {
  return NUMBERS.find(([name]) => name === key)?.[1] ?? key;
}

function Choice({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {NUMBERS.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function One({ run, route, id }: PageProps & { id: string }) {
  const path = `runs/${encodeURIComponent(run)}`;
  const answer = useAnswer(`${path}/rollout?id=${encodeURIComponent(id)}`);
  const data = answer.data;
  const [beside, setBeside] = useState<string[]>([]);
  const way = route.query.get("by") ?? "ratio";
  const by = (chosen: string) => (location.hash = changed(route, { by: chosen }));
  return (
    <>
      <h1>Rollout {id}</h1>
      <p>
        <a href={address(run, "rollouts")}>all rollouts</a> · <a href={address(run, "rollouts", { group: data?.group })}>its group</a> · <a href={address(run, "chain", { id })}>its chain</a>
        {data?.batch !== undefined && (
          <>
            {" "}
            · <a href={address(run, "chain", { batch: data.batch })}>batch {data.batch}</a>
          </>
        )}
      </p>
      <Problem text={answer.problem} />
      {data && (
        <>
          <p>
            <b>{data.fate}</b>
            {data.detail ? `: ${data.detail}` : ""}; reward {number(data.reward)}
            {data.advantage !== undefined ? `, advantage ${number(data.advantage)}` : ""}
          </p>
          <Tokens data={data} way={way} onWay={by} />
          <Section title="Its group, side by side" about="Samples of one prompt are compared with each other. Select some to read them next to this one.">
            <div class="scroll">
              <table class="list">
                <thead>
                  <tr>
                    <th scope="col">sample</th>
                    <th scope="col" class="num">
                      reward
                    </th>
                    <th scope="col" class="num">
                      advantage
                    </th>
                    <th scope="col" class="num">
                      tokens
                    </th>
                    <th scope="col">outcome</th>
                    <th scope="col">beside</th>
                  </tr>
                </thead>
                <tbody>
                  {data.siblings.map((sibling: any) => (
                    <tr key={sibling.id}>
                      <th scope="row">{sibling.id === id ? `${sibling.id} (this)` : <a href={address(run, "rollouts", { id: sibling.id })}>{sibling.id}</a>}</th>
                      <td class="num">{number(sibling.reward)}</td>
                      <td class="num">{number(sibling.advantage)}</td>
                      <td class="num">{count(sibling.tokens)}</td>
                      <td>{sibling.state}</td>
                      <td>
                        {sibling.id !== id && (
                          <input
                            type="checkbox"
                            aria-label={`show ${sibling.id}`}
                            checked={beside.includes(sibling.id)}
                            onChange={() => setBeside((all) => (all.includes(sibling.id) ? all.filter((one) => one !== sibling.id) : [...all, sibling.id].slice(-4)))}
                          />
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <div class="charts">
              {beside.map((other) => (
                <Other key={other} path={path} id={other} way={way} onWay={by} />
              ))}
            </div>
          </Section>
        </>
      )}
    </>
  );
}

function Other({ path, id, way, onWay }: { path: string; id: string; way: string; onWay: (way: string) => void }) {
  const answer = useAnswer(`${path}/rollout?id=${encodeURIComponent(id)}`);
  return (
    <div>
      <h3>
        {id}: reward {number(answer.data?.reward)}, {answer.data?.fate}
      </h3>
      <Problem text={answer.problem} />
      {answer.data && <Tokens data={answer.data} way={way} onWay={onWay} />}
    </div>
  );
}
