import { useEffect, useRef, useState } from "preact/hooks";
import { isSaved, useAnswer, type Dict } from "../api";
import { Chart } from "../parts/chart";
import { Bars, Card, Histogram, Mark, Problem, Section, type Health } from "../parts/basics";
import { essHealth, FEW_PROMPTS, intervalText, lastHeard, LOW_ESS, removed, removedHealth, rewardHealth, rolling, STALLED_SECONDS, Verdict, WINDOW } from "../parts/verdict";
import { count, mean, number, seconds, share, short, type Maybe } from "../numbers";
import { column, stages, useSteps, value } from "../steps";
import { ReportSection, ReportVerdict, type SectionOf } from "./report";
import type { PageProps } from "../main";

/** The doctor reads the whole log; up to this many offsets it runs by itself. */
const DOCTOR_UNASKED = 400_000;

export function NowPage({ run, news, facts }: PageProps) {
  const path = `runs/${encodeURIComponent(run)}`;
  const { steps, count: all, problem, isThere } = useSteps(run, `${news.steps} ${news.state}`);
  const every = useTick(facts.state === "running" && news.isConnected ? 2000 : 0);
  const now = useAnswer(`${path}/now`, news.state, Math.floor(every / 2));
  const asOf = useRef({ data: null as any, at: 0 });
  if (asOf.current.data !== now.data) {
    asOf.current = { data: now.data, at: performance.now() };
  }
  const heldOut = useAnswer(`${path}/evaluations`, Math.floor(news.steps / 4), news.index?.whole);
  const staleness = useAnswer(`${path}/staleness`, Math.floor(news.steps / 4), news.index?.whole);
  const lags = useAnswer(facts.state === "running" || facts.state === "on a cluster" ? `${path}/lags` : null, Math.floor(every / 3));
  const last = steps.at(-1);
  const recent = steps.slice(-WINDOW);
  const x = steps.map((step) => (step.batch as number) + 1);
  const by = { x, xLabel: "step", group: run };
  const over = facts.goal_steps ?? WINDOW;
  const running = rolling(column(steps, "reward"), over);
  const age = last && now.data ? Math.max(0, (now.data.now_ms + (isSaved ? 0 : performance.now() - asOf.current.at) - last.finished_ms) / 1000) : null;
  const isRunning = (facts.state === "running" || facts.state === "on a cluster") && (news.isConnected || isSaved);
  return (
    <>
      <Verdict steps={steps} facts={facts} now={now.data} isThere={isThere} age={age} isRunning={isRunning} />
      <Problem text={problem || now.problem} />
      <Alarms now={now.data} />
      <div class="cards">
        <Card
          title="Reward"
          health={rewardHealth(running, facts.goal)}
          value={number(running.at(-1) ?? mean(column(steps, "reward")))}
          under={`mean of ${Math.min(over, steps.length)} steps; newest ${number(value(last, "reward"))}${facts.goal ? `; goal ${facts.goal} over ${over}` : ""}`}
          about="Mean reward of the rollouts in a batch."
        />
        <Card
          title="Staleness"
          health={last ? "none" : undefined}
          value={number(mean(column(recent, "staleness_mean")), 2)}
          under={`versions; newest step at most ${number(value(last, "staleness_max"))}`}
          about="Versions between the weights that sampled a token and the weights that were trained on it."
        />
        <Card
          title="Effective sample size"
          health={essHealth(mean(column(recent, "ess")))}
          value={number(mean(column(recent, "ess")), 2)}
          under={`of 1, raw weights; truncated ${number(mean(column(recent, "ess_truncated")), 2)}`}
          about="Share of the rollouts that the batch is worth after off-policy weighting. Below 0.3 a few rollouts dominate."
        />
        <Card
          title="Removed by corrections"
          health={removedHealth(removed(recent))}
          value={share(removed(recent))}
          under={`of the tokens of the last ${recent.length} steps`}
          about="Share of the trainable tokens that masks removed."
        />
        <Card
          title={isRunning ? "Since the last step" : "Steps"}
          health={isRunning ? (age === null ? "none" : age > STALLED_SECONDS ? "ill" : "ok") : undefined}
          value={isRunning ? seconds(age) : count(Math.max(all, last ? (last.batch as number) + 1 : 0))}
          under={last ? `step ${count((last.batch as number) + 1)}${facts.max_steps > (last.batch as number) ? ` of ${facts.max_steps}` : ""}, version ${count(last.version)}` : "no step yet"}
        />
        <Card title="Throughput" value={`${short(rate(recent, "tokens_trained"))}/s`} under={`tokens trained; a step takes ${seconds(mean(durations(recent)))}`} />
      </div>

      <Section title="Does it learn?">
        <div class="charts wide">
          <Chart
            {...by}
            title="Reward"
            about={`Mean of each batch, and over ${over} steps.`}
            height={240}
            from={0}
            rules={facts.goal ? [{ label: `goal ${facts.goal}`, at: facts.goal }] : []}
            lines={[
              { label: "step", values: column(steps, "reward"), look: 0 },
              { label: `${over} steps`, values: running, look: 1 },
            ]}
          />
        </div>
        <HeldOut evaluations={heldOut.data?.evaluations ?? []} run={run} isThere={heldOut.data !== null} />
        <div class="charts">
          <Chart {...by} title="Entropy" about="Nats a token, of the policy before the update." from={0} lines={[{ label: "entropy", values: column(steps, "entropy") }]} />
          <Chart {...by} title="Response length" about="Tokens, mean of the batch." from={0} lines={[{ label: "tokens", values: column(steps, "response_tokens_mean") }]} />
          <Chart {...by} title="Gradient norm" about="L2 norm before clipping." from={0} lines={[{ label: "norm", values: column(steps, "grad_norm") }]} />
          <Chart
            {...by}
            title="Step scale"
            about="Factor by which the step control scales the learning rate."
            from={0}
            lines={[{ label: "step scale", values: column(steps, "step_scale") }]}
          />
        </div>
      </Section>

      <Section title="How stale is it?" about="Versions between the weights that sampled a token and the weights that trained on it.">
        <div class="charts">
          <Chart
            {...by}
            title="Staleness"
            about="Mean over the tokens trained on, and its two parts."
            from={0}
            to={1}
            lines={[
              { label: "mean", values: column(steps, "staleness_mean") },
              { label: "max", values: column(steps, "staleness_max") },
              { label: "in flight", values: column(steps, "staleness_in_flight") },
              { label: "in queue", values: column(steps, "staleness_in_queue") },
            ]}
          />
          <Histogram
            label="Rollouts by staleness"
            xLabel={staleness.data?.from_batch !== undefined ? `versions, of the oldest token at the step; steps ${staleness.data.from_batch + 1} to ${staleness.data.to_batch + 1}` : ""}
            rows={staleness.data?.histogram ?? []}
          />
          <ThreeLags lags={lags.data} last={last} steps={recent} now={now.data} facts={facts} />
        </div>
      </Section>

      <Section title="How far off policy is it?">
        <div class="charts">
          <Chart
            {...by}
            title="Effective sample size"
            about="Over the number of sequences: 1 is on-policy."
            from={0}
            to={1}
            rules={[{ label: "a few dominate below 0.3", at: LOW_ESS }]}
            lines={[
              { label: "raw", values: column(steps, "ess") },
              { label: "truncated", values: column(steps, "ess_truncated") },
            ]}
          />
          <Chart
            {...by}
            title="Second moment of the log-ratio"
            about="Proximal to behavior, before and after its mask."
            from={0}
            lines={[
              { label: "raw", values: column(steps, "second_moment") },
              { label: "trained on", values: column(steps, "second_moment_trained") },
            ]}
          />
          <Chart
            {...by}
            title="KL, behavior to current"
            about="k1 and k3 estimate the same KL; they differ where ratios are extreme."
            lines={[
              { label: "k1", values: column(steps, "approx_kl_behavior") },
              { label: "k3", values: column(steps, "approx_kl3_behavior") },
            ]}
          />
          <Chart
            {...by}
            title="Chi-square"
            about="Mean squared ratio less 1, over tokens and over sequences."
            from={0}
            lines={chiSquare(steps)}
          />
        </div>
      </Section>

      <Section title="What did the corrections remove?" about={`Stages in their order, over the last ${recent.length} steps: tokens seen and tokens changed. A mask removes tokens; a weight truncates or zeroes their weights.`}>
        <StageTable steps={steps} facts={facts} />
        <div class="charts">
          <Chart
            {...by}
            title="Tokens changed by each stage"
            about="Share of the tokens that reached the stage."
            from={0}
            format={share}
            lines={stages(steps, WINDOW, facts.stages)
              .filter((stage) => stage.does === "masks" || stage.does === "weighs")
              .map((stage) => ({ label: stage.name, values: stage.shares }))}
          />
          <Chart
            {...by}
            title="Clipped and masked"
            about="Clipped: tokens without a gradient. Masked: rollouts without a trained token. Removed: tokens not trained on."
            from={0}
            format={share}
            lines={[
              { label: "clipped", values: column(steps, "clip_fraction") },
              { label: "masked", values: steps.map((s) => ratio(s.rollouts_masked, s.rollouts_trained + s.rollouts_masked)) },
              { label: "removed", values: steps.map((s) => (s.tokens_trainable > 0 ? 1 - s.tokens_trained / s.tokens_trainable : null)) },
            ]}
          />
        </div>
      </Section>

      <Section title="Who works, who waits?">
        <div class="charts">
          <Chart
            {...by}
            title="Throughput"
            about="Tokens trained per second, from the end of one step to the next."
            from={0}
            format={short}
            lines={[{ label: "tokens/s", values: rates(steps) }]}
          />
          <Chart
            {...by}
            title="Time of a step"
            about="Seconds in the step, and before it, waiting for a batch and publishing the last version."
            from={0}
            lines={[
              { label: "in the step", values: durations(steps) },
              { label: "before it", values: waits(steps) },
            ]}
          />
          <Idle now={now.data} steps={recent} />
        </div>
        <Servers now={now.data} last={last} isWhole={(news.index ?? facts.index)?.whole === true} isOver={facts.state === "finished" || facts.state === "killed" || facts.state === "failed to start" || facts.archived === true} />
      </Section>

      <Lap path={path} isThere={all > 0} />
      <Diagnosis path={path} index={news.index ?? facts.index ?? null} isArchived={facts.archived === true} />
    </>
  );
}

function useTick(ms: number): number {
  const [tick, set] = useState(0);
  useEffect(() => {
    if (ms === 0 || isSaved) {
      return;
    }
    const timer = setInterval(() => document.hidden || set((t) => t + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return tick;
}

function ratio(part: Maybe, whole: Maybe): number | null {
  return part === null || part === undefined || !whole ? null : part / whole;
}

function durations(steps: Dict[]): number[] {
  return steps.map((s) => (s.finished_ms - s.started_ms) / 1000);
}

function waits(steps: Dict[]): (number | null)[] {
  return steps.map((s, i) => (i === 0 || s.batch !== steps[i - 1]!.batch + 1 ? null : Math.max(0, (s.started_ms - steps[i - 1]!.finished_ms) / 1000)));
}

function rates(steps: Dict[]): (number | null)[] {
  return steps.map((s, i) => (i === 0 || s.batch !== steps[i - 1]!.batch + 1 ? null : (1000 * s.tokens_trained) / Math.max(1, s.finished_ms - steps[i - 1]!.finished_ms)));
}

function rate(steps: Dict[], name: string): number | null {
  const first = steps[0];
  const last = steps.at(-1);
  if (!first || !last || first === last) {
    return null;
  }
  return (1000 * steps.slice(1).reduce((sum, s) => sum + s[name], 0)) / Math.max(1, last.finished_ms - first.finished_ms);
}

function chiSquare(steps: Dict[]) {
  const names = new Set<string>();
  for (const step of steps.slice(-WINDOW)) {
    for (const name of Object.keys(step.metrics)) {
      if (/chi2/.test(name) && !name.startsWith("recorded.")) {
        names.add(name);
      }
    }
  }
  return [...names].slice(0, 4).map((name) => ({ label: name.replace(/^.*chi2_?/, "") || "tokens", values: column(steps, name) }));
}

function Alarms({ now }: { now: any }) {
  const alarms: any[] = now?.alarms ?? [];
  const stages: string[] = now?.status?.idle_stages ?? [];
  return (
    <>
      {alarms.map((alarm) => (
        <p class="problem" role="alert" key={alarm.name + alarm.subject}>
          <b>
            {alarm.name}, {alarm.subject}:
          </b>{" "}
          {alarm.sentence} {alarm.remedy && <code>{alarm.remedy}</code>}
        </p>
      ))}
      {stages.map((sentence) => (
        <p class="note" key={sentence}>
          {sentence}
        </p>
      ))}
    </>
  );
}

function ThreeLags({ lags, last, steps, now, facts }: { lags: any; last: Dict | undefined; steps: Dict[]; now: any; facts: any }) {
  const behind = { ...(now?.status?.behind ?? lags?.behind ?? {}) } as Record<string, number>;
  return (
    <figure>
      <figcaption>
        <h3>Three lags</h3>
        <p class="about">Records, seconds and versions are independent; only versions decide what a gradient is worth.</p>
      </figcaption>
      <table class="list">
        <tbody>
          {Object.entries(behind).map(([role, records]) => (
            <tr key={role}>
              <th scope="row">records waiting for the {role}</th>
              <td class="num">{count(records)}</td>
            </tr>
          ))}
          {Object.keys(behind).length === 0 && (
            <tr>
              <th scope="row">records</th>
              <td>{facts.archived ? "an archive has no consumers" : lags?.why ? `not known: ${lags.why}` : facts.state === "running" ? "–" : "no consumer is running"}</td>
            </tr>
          )}
          <tr>
            <th scope="row">seconds before a step begins</th>
            <td class="num">{seconds(mean(waits(steps)))}</td>
          </tr>
          <tr>
            <th scope="row">versions, at the newest step</th>
            <td class="num">{number(value(last, "staleness_mean"), 2)}</td>
          </tr>
        </tbody>
      </table>
    </figure>
  );
}

function StageTable({ steps, facts }: { steps: Dict[]; facts: any }) {
  const all = stages(steps, WINDOW, facts.stages);
  if (all.length === 0) {
    return <p class="none">No stage has reported yet.</p>;
  }
  return (
    <div class="scroll">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">stage</th>
            <th scope="col">what it does</th>
            <th scope="col" class="num wide">
              tokens seen
            </th>
            <th scope="col" class="num">
              changed
            </th>
            <th scope="col" class="bar" />
            <th scope="col" class="num">
              rollouts changed
            </th>
          </tr>
        </thead>
        <tbody>
          {all.map((stage) => (
            <tr key={stage.name}>
              <th scope="row">
                <code>{stage.name}</code>
              </th>
              <td>{stage.does}</td>
              <td class="num wide">{count(stage.seen)}</td>
              <td class="num">{stage.seen > 0 ? share(stage.changed / stage.seen) : "–"}</td>
              <td class="track">
                <span style={{ width: `${stage.seen > 0 ? (100 * stage.changed) / stage.seen : 0}%`, background: stage.does === "masks" ? "var(--bar)" : "var(--line)" }} />
              </td>
              <td class="num">{stage.sequencesSeen > 0 ? share(stage.sequencesChanged / stage.sequencesSeen) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Idle({ now, steps }: { now: any; steps: Dict[] }) {
  const idle: Record<string, number> = now?.status?.idle ?? {};
  const busy = durations(steps).reduce((a, b) => a + b, 0);
  const first = steps[0];
  const last = steps.at(-1);
  const wall = first && last ? (last.finished_ms - first.started_ms) / 1000 : 0;
  const bars = Object.entries(idle).map(([role, part]) => ({ label: role, value: part, text: share(part), look: 1 }));
  if (bars.length === 0 && wall > 0) {
    bars.push({ label: "learner", value: Math.max(0, 1 - busy / wall), text: share(Math.max(0, 1 - busy / wall)), look: 1 });
  }
  return (
    <figure>
      <figcaption>
        <h3>Idle</h3>
        <p class="about">
          {Object.keys(idle).length > 0
            ? "Share of the last seconds in which a role waited for input."
            : `Share of the last ${steps.length} steps' time outside a step. Only their own process knows how long the other roles waited: train --view shows it.`}
        </p>
      </figcaption>
      {bars.length > 0 ? <Bars label="idle" most={1} bars={bars} /> : <p class="none">No step yet.</p>}
    </figure>
  );
}

function Servers({ now, last, isWhole, isOver }: { now: any; last: Dict | undefined; isWhole: boolean; isOver: boolean }) {
  const servers: any[] = now?.servers ?? [];
  if (servers.length === 0) {
    return <p class="none">{isOver ? "The run has ended: no server is left." : "No server has reported a version yet."}</p>;
  }
  return (
    <div class="scroll">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">server</th>
            <th scope="col">role</th>
            <th scope="col" class="num">
              serves version
            </th>
            <th scope="col" class="num">
              behind
            </th>
            <th scope="col" class="num">
              tokens/s
            </th>
            <th scope="col">last heard</th>
          </tr>
        </thead>
        <tbody>
          {servers.map((server) => {
            const heard = lastHeard(server, now.now_ms, last?.finished_ms, isWhole);
            return (
              <tr key={server.server} class={heard.isOld ? "old" : ""}>
                <th scope="row">{server.server}</th>
                <td>{server.role.toLowerCase()}</td>
                <td class="num">{server.version}</td>
                <td class="num">{heard.isOld || now.newest_version === undefined ? "–" : now.newest_version - server.version}</td>
                <td class="num">{heard.isOld ? "–" : short(server.tokens_per_second)}</td>
                <td>{heard.text}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The server reads every rollout of the last batches: once by itself, then by the button. */
function Lap({ path, isThere }: { path: string; isThere: boolean }) {
  const [asked, ask] = useState(0);
  const answer = useAnswer(isThere ? `${path}/lap` : null, asked);
  return (
    <Section
      title="Where does a batch wait?"
      about="The way of each batch's last rollout, from the release of its prompt until a generator serves the version trained on it."
    >
      {!isSaved && isThere && (
        <button type="button" onClick={() => ask((n) => n + 1)} disabled={answer.isAsking}>
          {answer.isAsking ? "reading…" : "read again"}
        </button>
      )}
      <Problem text={answer.problem} />
      {answer.data?.why && <p class="none">{answer.data.why}</p>}
      {answer.data?.report?.sections.map((section: SectionOf, i: number) => (
        <ReportSection of={section} names={[]} key={i} />
      ))}
    </Section>
  );
}

const HEALTH: Record<string, Health> = { broken: "ill", critical: "ill", warning: "look", note: "none" };

function Diagnosis({ path, index, isArchived }: { path: string; index: { end: number; whole: boolean } | null; isArchived: boolean }) {
  const [asked, ask] = useState(isSaved ? 1 : 0);
  const isShort = index?.whole === true && index.end < DOCTOR_UNASKED; // a run's length is unknown until now
  useEffect(() => {
    if (isShort) {
      ask((n) => Math.max(1, n));
    }
  }, [isShort]);
  const answer = useAnswer(asked > 0 ? `${path}/diagnosis` : null, asked);
  const findings: any[] = answer.data?.findings ?? [];
  return (
    <Section
      title="What does the doctor say?"
      about={
        isArchived
          ? "For an archive the doctor judges only the gap between sampler and learner, not the ledger, progress or serving."
          : "Reads the whole log and judges the ledger, the gap between sampler and learner, progress and serving."
      }
    >
      {!isSaved && (
        <button type="button" onClick={() => ask((n) => n + 1)} disabled={answer.isAsking && asked > 0}>
          {asked === 0 ? "examine (reads the whole log)" : answer.isAsking ? "examining…" : "examine again"}
        </button>
      )}
      <Problem text={answer.problem} />
      {answer.data && findings.length === 0 && (
        <p>
          <Mark health="ok" /> No problem found in {count(answer.data.steps)} {isArchived ? "batches" : "steps"}.
        </p>
      )}
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map((finding, i) => (
            <li key={i}>
              <Mark health={HEALTH[finding.weight] ?? "none"} /> <b>{finding.subject}</b> <span class="weight">{finding.weight}</span>
              <p>{finding.sentence}</p>
              {finding.advice && <p class="advice">→ {finding.advice}</p>}
            </li>
          ))}
        </ul>
      )}
      {answer.data?.treatment && (
        <div class="treatment">
          <ReportVerdict of={answer.data.treatment.conclusion} />
          {answer.data.treatment.sections.map((section: SectionOf, i: number) => (
            <ReportSection of={section} names={[]} key={i} />
          ))}
        </div>
      )}
    </Section>
  );
}

/** Versions on held-out prompts. */
function HeldOut({ evaluations, run, isThere }: { evaluations: Dict[]; run: string; isThere: boolean }) {
  const last = evaluations.at(-1);
  if (!last) {
    return isThere ? (
      <p class="none">
        No version has been evaluated on held-out prompts; <code>--set evaluation.every_versions=10</code> evaluates during training.
      </p>
    ) : null;
  }
  const best = evaluations.reduce((one, other) => (other.reward > one.reward ? other : one));
  return (
    <div class="charts">
      <Chart
        x={evaluations.map((each) => each.version)}
        xLabel="version"
        group={`${run} held out`}
        title="Reward on held-out prompts"
        about={`${intervalText(last.prompts)}; ${last.samples_per_prompt} responses to each. The best is version ${best.version}.`}
        rest="last"
        lines={[
          {
            label: "reward",
            values: evaluations.map((each) => each.reward),
            ...(last.prompts < FEW_PROMPTS ? {} : { low: evaluations.map((each) => each.reward_low), high: evaluations.map((each) => each.reward_high) }),
          },
        ]}
      />
      <Chart
        x={evaluations.map((each) => each.version)}
        xLabel="version"
        group={`${run} held out`}
        title="pass@k on held-out prompts"
        about={`How often one of k responses has a reward above ${last.correct_above}; without bias.`}
        rest="last"
        from={0}
        to={1}
        lines={last.pass_at_k
          .filter((point: Dict) => point.k <= last.samples_per_prompt)
          .map((point: Dict) => ({
            label: `pass@${point.k}`,
            values: evaluations.map((each) => each.pass_at_k.find((one: Dict) => one.k === point.k)?.unbiased ?? null),
          }))}
      />
    </div>
  );
}
