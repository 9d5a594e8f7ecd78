import { useState } from "preact/hooks";
import { useAnswer } from "../api";
import { Problem, Section } from "../parts/basics";
import { clock, count, number, seconds, share, type Maybe } from "../numbers";
import { address, changed } from "../route";
import type { PageProps } from "../main";

export function ChainPage(props: PageProps) {
  const id = props.route.query.get("id");
  return id !== null ? <OfRollout {...props} id={id} /> : <OfBatch {...props} />;
}

/** One box of the chain: the event, the position of its record, and the record on demand. */
function Box(props: { path: string; title: string; place?: string | undefined; time?: number; after?: number; children?: any }) {
  const [isOpen, open] = useState(false);
  const record = useAnswer(isOpen && props.place ? `${props.path}/record?place=${encodeURIComponent(props.place)}` : null);
  return (
    <li class="box">
      <h3>{props.title}</h3>
      <p class="about">
        {props.time !== undefined && `${clock(props.time)}.${String(props.time % 1000).padStart(3, "0")}`}
        {props.after !== undefined && ` · ${props.after < 0 ? "" : "+"}${seconds(props.after / 1000)}`}
      </p>
      {props.children}
      {props.place && (
        <details onToggle={(e) => open((e.currentTarget as HTMLDetailsElement).open)}>
          <summary>
            <code>{props.place}</code>
          </summary>
          <Problem text={record.problem || record.data?.problem || ""} />
          {record.data && !record.data.problem && <pre tabIndex={0}>{JSON.stringify(record.data, shortened, 1)}</pre>}
        </details>
      )}
    </li>
  );
}

/** Long vectors on one line. */
function shortened(_: string, value: any) {
  return Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === "number") ? `[${value.map((v) => (Number.isInteger(v) ? v : Number(v.toPrecision(6)))).join(", ")}]` : value;
}

/** In the order in which the batch's stages decided. */
function inOrder(stages: any[], like: any[]): any[] {
  const place = (stage: any) => like.findIndex((one) => one.stage === stage.stage);
  return [...stages].sort((a, b) => place(a) - place(b));
}

function StageList({ stages }: { stages: any[] }) {
  return (
    <div class="scroll">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">stage</th>
            <th scope="col" class="num">
              tokens seen
            </th>
            <th scope="col" class="num">
              changed
            </th>
            <th scope="col" class="num">
              rollouts changed
            </th>
            <th scope="col">its own numbers</th>
          </tr>
        </thead>
        <tbody>
          {stages.map((stage) => (
            <tr key={stage.stage}>
              <th scope="row">
                <code>{stage.stage}</code>
              </th>
              <td class="num">{count(stage.tokens_seen)}</td>
              <td class="num">{count(stage.tokens_changed)}</td>
              <td class="num">{count(stage.sequences_changed)}</td>
              <td>
                <details>
                  <summary>{Object.keys(stage.values).length}</summary>
                  {Object.entries(stage.values as Record<string, number>).map(([name, value]) => (
                    <div key={name}>
                      <code>{name}</code> {number(value)}
                    </div>
                  ))}
                </details>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function OfRollout({ run, id }: PageProps & { id: string }) {
  const path = `runs/${encodeURIComponent(run)}`;
  const answer = useAnswer(`${path}/rollout?id=${encodeURIComponent(id)}`);
  const data = answer.data;
  const events: any[] = data?.events ?? [];
  return (
    <>
      <h1>The chain of {id}</h1>
      <p>
        <a href={address(run, "rollouts", { id })}>its tokens</a>
        {data?.batch !== undefined && (
          <>
            {" "}
            · <a href={address(run, "chain", { batch: data.batch })}>batch {data.batch}, and what another algorithm would make of it</a>
          </>
        )}
      </p>
      <Problem text={answer.problem} />
      {data && (
        <>
          <p>
            <b>{data.fate}</b>
            {data.detail ? `: ${data.detail}` : ""}
          </p>
          <ol class="chain">
            {events.map((event, i) => (
              <Box key={i} path={path} title={event.event} place={event.place} time={event.time_ms} {...(i > 0 ? { after: event.time_ms - events[i - 1].time_ms } : {})}>
                {event.details.map((line: string) => (
                  <p key={line}>{line}</p>
                ))}
                {event.event === "batched" && <p>Stages decided in this order: {data.stages.map((s: any) => s.stage).join(", ")}.</p>}
              </Box>
            ))}
            {data.gradient && (
              <Box path={path} title="gradient" place={events.find((e) => e.event === "trained" || e.event === "masked")?.place}>
                {Object.entries(data.gradient as Record<string, number>).map(([name, value]) => (
                  <p key={name}>
                    {name.replaceAll("_", " ")} {number(value, 5)}
                  </p>
                ))}
              </Box>
            )}
            {data.version && (
              <Box path={path} title={`version ${data.version.version} published`} place={data.version.place} time={data.version.published_ms} />
            )}
          </ol>
          {data.stages.length > 0 && (
            <Section title="What each stage decided about its batch" about="When the batch was assembled, in order.">
              <StageList stages={data.stages} />
            </Section>
          )}
          {(data.step_stages ?? []).length > 0 && (
            <Section title="What the stages in force at the step reported" about="The learner decides again where new versions were published after the assembly.">
              <StageList stages={inOrder(data.step_stages, data.stages)} />
            </Section>
          )}
        </>
      )}
    </>
  );
}

function OfBatch({ run, route, news }: PageProps) {
  const path = `runs/${encodeURIComponent(run)}`;
  const chosen = route.query.get("batch");
  const as = route.query.get("as") ?? "";
  const answer = useAnswer(`${path}/batch?batch=${chosen ?? -1}`, chosen === null ? news.steps : 0, news.index?.whole);
  const batch = answer.data;
  const there = batch?.batch !== undefined;
  const names = useAnswer(`${path}/algorithms`);
  const other = useAnswer(as !== "" && there ? `${path}/redecide?batch=${batch.batch}&as=${encodeURIComponent(as)}` : null);
  const [keys, setKeys] = useState("masks: []\nweights: {kind: token, threshold: \"1.5\"}");
  const record = useAnswer(there ? `${path}/record?place=${encodeURIComponent(batch.place)}` : null);
  const stages = (record.data?.record?.stages ?? []) as any[];
  const redecided = other.data && !other.data.problem ? other.data : null;
  return (
    <>
      <h1>The chain{there ? `: batch ${batch.batch}` : ""}</h1>
      <p class="filters">
        {there && batch.batch > 0 && <a href={changed(route, { batch: batch.batch - 1 })}>← batch {batch.batch - 1}</a>}
        {there && batch.batch < batch.last && <a href={changed(route, { batch: batch.batch + 1 })}>batch {batch.batch + 1} →</a>}
        <label>
          batch <input style={{ width: "6em" }} inputMode="numeric" value={there ? batch.batch : ""} onChange={(e) => (location.hash = changed(route, { batch: e.currentTarget.value }))} />
        </label>
      </p>
      <Problem text={answer.problem} />
      {answer.data && !there && <p class="none">No batch yet.</p>}
      {there && (
        <>
          <ol class="chain">
            <Box path={path} title={`${batch.entries.length} rollouts joined with their scores`}>
              <p>of {new Set(batch.entries.map((e: any) => e.group)).size} prompts; each rollout below has its own chain</p>
            </Box>
            <Box path={path} title={`batch ${batch.batch} assembled`} place={batch.place} time={batch.assembled_ms}>
              <p>
                at version {batch.assembled_version}, for a step expected at version {batch.expected_version}
              </p>
            </Box>
            {batch.step_place && (
              <Box path={path} title={batch.starved ? "starved: nothing left to train on" : "trained"} place={batch.step_place} time={batch.finished_ms} after={batch.finished_ms - batch.assembled_ms} />
            )}
            {batch.published && <Box path={path} title={`version ${batch.version} published`} place={batch.published.place} time={batch.published.published_ms} after={batch.published.published_ms - batch.finished_ms} />}
          </ol>
          {stages.length > 0 && (
            <Section title="What each stage decided" about="When the batch was assembled, in order.">
              <StageList stages={stages} />
            </Section>
          )}
          <Section title="Decide it again" about="Decides the same rollouts under another algorithm, as replay does. Writes nothing.">
            <p class="filters">
              <label>
                algorithm{" "}
                <select value={(names.data?.names ?? []).includes(as) ? as : ""} onChange={(e) => (location.hash = changed(route, { batch: batch.batch, as: e.currentTarget.value }))}>
                  <option value="">as it was</option>
                  {(names.data?.names ?? []).map((name: string) => (
                    <option key={name} value={name}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
            </p>
            <details open={as.includes(":")}>
              <summary>or override keys of the run's algorithm</summary>
              <textarea rows={4} aria-label="keys of algorithm, as YAML" value={as.includes(":") ? as : keys} onInput={(e) => setKeys(e.currentTarget.value)} />
              <button type="button" onClick={() => (location.hash = changed(route, { batch: batch.batch, as: keys }))}>
                decide
              </button>
            </details>
            <Problem text={other.problem || other.data?.problem || ""} />
            {other.isAsking && as !== "" && <p class="none">Deciding…</p>}
            {redecided && <Difference recorded={batch} other={redecided} />}
          </Section>
          <Section title="Its rollouts">
            <Entries run={run} batch={batch} other={redecided} />
          </Section>
        </>
      )}
    </>
  );
}

const FIGURES: [string, string, (value: Maybe) => string][] = [
  ["tokens_masked", "tokens masked", count],
  ["sequences_masked", "rollouts masked entirely", count],
  ["changed_weights", "weights truncated or set to 0", count],
  ["mean_weight", "mean weight", number],
  ["max_weight", "largest weight", number],
  ["ess", "effective sample size, raw", number],
  ["ess_truncated", "effective sample size, truncated", number],
  ["step_scale", "step scale", number],
  ["second_moment", "second moment", number],
  ["k1", "KL of the remaining tokens, k1", number],
  ["chi_square", "chi-square of the remaining tokens", number],
];

function Difference({ recorded, other }: { recorded: any; other: any }) {
  const [own, its] = other.figures;
  const changes = other.recorded.filter((entry: any, i: number) => (entry.trained_tokens > 0) !== (other.entries[i]?.trained_tokens > 0)).length;
  const some = other.recorded.filter((entry: any, i: number) => entry.trained_tokens !== other.entries[i]?.trained_tokens).length;
  return (
    <>
      <p>
        <b>
          {changes === 0 ? "No rollout" : `${changes} of ${recorded.entries.length} rollouts`} would have been trained on or masked instead
        </b>
        , {count(some)} with other tokens; {share(its.tokens_masked / its.tokens)} of the tokens masked instead of {share(own.tokens_masked / own.tokens)}.
        {" "}This compares decisions at the batch's assembly, over the log-probs of that moment. The learner decides again where new versions were published since.
        {!other.is_as_recorded && " The run's own algorithm does not reproduce the recorded batch: it ran with another configuration."}
      </p>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">of the batch</th>
              <th scope="col" class="num">
                as it was
              </th>
              <th scope="col" class="num">
                {other.algorithm}
              </th>
            </tr>
          </thead>
          <tbody>
            {FIGURES.map(([key, name, format]) => (
              <tr key={key} class={format(own[key]) !== format(its[key]) ? "changed" : ""}>
                <th scope="row">{name}</th>
                <td class="num">{format(own[key])}</td>
                <td class="num">{format(its[key])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Entries({ run, batch, other }: { run: string; batch: any; other: any }) {
  const [all, setAll] = useState(false);
  const rows = batch.entries.map((entry: any, i: number) => ({ ...entry, other: other?.entries[i], then: other?.recorded[i] }));
  const differs = (row: any) =>
    row.other && row.then && (row.other.trained_tokens !== row.then.trained_tokens || row.other.masked_by !== row.then.masked_by || Math.abs(row.other.advantage - row.then.advantage) > 1e-12);
  const sorted = other ? [...rows.filter(differs), ...rows.filter((row: any) => !differs(row))] : rows;
  const shown = all ? sorted : sorted.slice(0, 64);
  return (
    <>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">rollout</th>
              <th scope="col" class="num">
                reward
              </th>
              <th scope="col" class="num">
                advantage
              </th>
              <th scope="col" class="num">
                staleness expected
              </th>
              <th scope="col" class="num">
                mean ratio
              </th>
              <th scope="col" class="num">
                tokens trained
              </th>
              <th scope="col">masked by</th>
              {other && (
                <>
                  <th scope="col" class="num">
                    at assembly
                  </th>
                  <th scope="col" class="num">
                    {other.algorithm}: advantage
                  </th>
                  <th scope="col" class="num">
                    tokens trained
                  </th>
                  <th scope="col">masked by</th>
                </>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((row: any) => (
              <tr key={row.id} class={differs(row) ? "changed" : ""}>
                <th scope="row">
                  <a href={address(run, "chain", { id: row.id })}>{row.id}</a>
                </th>
                <td class="num">{number(row.reward)}</td>
                <td class="num">{number(row.advantage)}</td>
                <td class="num">{row.staleness}</td>
                <td class="num">{row.ratio === null ? "–" : Math.exp(row.ratio).toFixed(3)}</td>
                <td class="num">
                  {row.trained_tokens} of {row.tokens ?? "–"}
                </td>
                <td>{row.masked_by ?? ""}</td>
                {other && (
                  <>
                    <td class="num">
                      {row.then?.trained_tokens ?? "–"}
                      {row.then?.masked_by ? `, ${row.then.masked_by}` : ""}
                    </td>
                    <td class="num">{number(row.other?.advantage)}</td>
                    <td class="num">{row.other?.trained_tokens ?? "–"}</td>
                    <td>{row.other?.masked_by ?? ""}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > shown.length && (
        <button type="button" onClick={() => setAll(true)}>
          all {sorted.length}
        </button>
      )}
    </>
  );
}
