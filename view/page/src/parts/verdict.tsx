// The summary: is the run healthy, how stale is it, what did the corrections remove.
import type { Dict } from "../api";
import { clock, count, mean, number, seconds, share, type Maybe } from "../numbers";
import { column, stages, value } from "../steps";
import { Mark, type Health } from "./basics";

/** Number of steps behind the sentences. */
export const WINDOW = 10;
/** Thresholds shared with the doctor. */
export const LOW_ESS = 0.3;
export const STALLED_SECONDS = 120;
/**
 * Rise of the reward over the second half of the steps, and the steps needed, below which it counts as flat; the
 * terminal uses the same.
 */
const RISE = 0.02;
const FLAT_STEPS = 60;

export function rolling(values: Maybe[], over: number): (number | null)[] {
  return values.map((_, i) => (i + 1 < over ? null : mean(values.slice(i + 1 - over, i + 1))));
}

export function removed(steps: Dict[]): number | null {
  const trainable = steps.reduce((sum, s) => sum + s.tokens_trainable, 0);
  return trainable === 0 ? null : 1 - steps.reduce((sum, s) => sum + s.tokens_trained, 0) / trainable;
}

export function rewardHealth(running: Maybe[], goal: Maybe): Health {
  const last = running.at(-1);
  const before = running.at(-21);
  if (last === null || last === undefined) {
    return "none";
  }
  if (goal && last >= goal) {
    return "ok";
  }
  const best = Math.max(...running.filter((v): v is number => typeof v === "number"));
  return best > 0 && last < 0.7 * best ? "ill" : before !== null && before !== undefined && last < before - 0.02 ? "look" : "ok";
}

/**
 * Rise of the running reward per step over about the last 20 steps; null if it is flat, falls, or has too few steps.
 */
export function pace(steps: Dict[], running: Maybe[]): number | null {
  const first = Math.max(0, running.length - 21);
  const from = running.findIndex((value, i) => i >= first && typeof value === "number");
  const last = running.at(-1);
  const over = from < 0 ? 0 : steps.at(-1)!.batch - steps[from]!.batch;
  if (typeof last !== "number" || over < WINDOW) {
    return null;
  }
  const rise = last - (running[from] as number);
  return rise > RISE ? rise / over : null;
}

/** Distance of a reward from its goal, and its rate of approach. */
export function goalText(at: number, goal: number, rise: number | null): string {
  const left = `So far ${number(at, 2)} of the goal ${goal}`;
  return rise === null ? left : `${left}, +${number(rise, 3)} a step, about ${count(Number(Math.ceil((goal - at) / rise).toPrecision(2)))} steps to go at this pace`;
}

/**
 * Number of steps, half of all, over which a reward below its goal was flat; 0 if it was not, or if it is too early to
 * say.
 */
export function flatFor(running: Maybe[], goal: Maybe): number {
  const half = Math.floor(running.length / 2);
  const last = running.at(-1);
  const before = running[running.length - 1 - half];
  const isFlat = running.length >= FLAT_STEPS && goal && typeof last === "number" && typeof before === "number" && last < goal && last - before < RISE;
  return isFlat ? half : 0;
}

export function essHealth(ess: Maybe): Health {
  return ess === null || ess === undefined ? "none" : ess < LOW_ESS ? "ill" : ess < 0.6 ? "look" : "ok";
}

export function removedHealth(part: Maybe): Health {
  return part === null || part === undefined ? "none" : part > 0.5 ? "ill" : part > 0.25 ? "look" : "ok";
}

/** An interval over fewer prompts is meaningless. */
export const FEW_PROMPTS = 10;

/** Number of prompts and interval of a held-out reward. */
export function intervalText(prompts: number): string {
  const of = `${count(prompts)} ${prompts === 1 ? "prompt" : "prompts"}`;
  return prompts < FEW_PROMPTS ? `${of}: too few for an interval` : `${of}; the band is the interval of 95 % over them by Student's distribution, within [0, 1] where the rewards are`;
}

/** A server without a heartbeat for this long before the newest step is outdated. */
const SILENT_MS = 30_000;

/** Last heartbeat of a server, and whether it is outdated. */
export function lastHeard(server: Dict, nowMs: number, newestStepMs: Maybe, isWhole: boolean): { text: string; isOld: boolean } {
  if (server.left) {
    return { text: "it has left", isOld: true };
  }
  const ago = `${seconds((nowMs - server.heartbeat_ms) / 1000)} ago`;
  const isOld = typeof newestStepMs === "number" && newestStepMs - server.heartbeat_ms > SILENT_MS;
  return { text: !isOld ? ago : isWhole ? `${ago}, silent since` : `${ago}; newer records are not read yet`, isOld };
}

interface Answer {
  health: Health;
  text: string;
}

function worst(answers: Answer[]): Health {
  return answers.some((a) => a.health === "ill") ? "ill" : answers.some((a) => a.health === "look") ? "look" : "ok";
}

function rewardAnswer(steps: Dict[], facts: any): Answer {
  const over = facts.goal_steps ?? WINDOW;
  const running = rolling(column(steps, "reward"), over);
  const health = rewardHealth(running, facts.goal);
  const at = running.at(-1) ?? value(steps.at(-1), "reward");
  const best = Math.max(...running.filter((v): v is number => typeof v === "number"));
  const before = running.at(-21);
  if (facts.goal && typeof at === "number" && running.at(-1) !== null && at >= facts.goal) {
    return { health, text: `The reward has reached its goal, ${number(at)} of ${facts.goal}.` };
  }
  if (health === "ill") {
    return { health, text: `The reward has fallen to ${number(at)} from its best of ${number(best)}.` };
  }
  const flat = flatFor(running, facts.goal);
  if (flat > 0) {
    return { health: "look", text: `${goalText(at as number, facts.goal, null)}; it has not risen for ${count(flat)} steps (${number(running[running.length - 1 - flat])} then).` };
  }
  const rise = pace(steps, running);
  if (facts.goal && typeof at === "number" && rise !== null) {
    return { health, text: `${goalText(at, facts.goal, rise)}.` };
  }
  const moves =
    typeof before !== "number" || typeof at !== "number" ? "" : at > before + 0.02 ? ` and rises (${number(before)} twenty steps ago)` : at < before - 0.02 ? ` and falls (${number(before)} twenty steps ago)` : ", as twenty steps ago";
  return { health, text: `${facts.goal && typeof at === "number" ? goalText(at, facts.goal, null) : `The reward is ${number(at)}`}${moves}.` };
}

/** All health findings of the run, problems first. */
function healthAnswers(steps: Dict[], facts: any, now: any, age: number | null, isRunning: boolean): Answer[] {
  const recent = steps.slice(-WINDOW);
  const answers = [rewardAnswer(steps, facts)];
  const ess = mean(column(recent, "ess"));
  if (ess !== null && ess < LOW_ESS) {
    answers.push({ health: "ill", text: `A few rollouts dominate: the effective sample size is ${number(ess, 2)} of 1.` });
  } else if (ess !== null && ess < 0.6) {
    answers.push({ health: "look", text: `The effective sample size is ${number(ess, 2)} of 1: some rollouts count for much more than others.` });
  }
  const gone = removed(recent);
  if (gone !== null && gone > 0.25) {
    answers.push({ health: removedHealth(gone), text: `The corrections remove ${share(gone)} of the tokens.` });
  }
  const newest = removed(recent.slice(-1));
  if (newest !== null && gone !== null && newest > 0.5 && gone <= 0.25) {
    answers.push({ health: "look", text: `The newest step lost ${share(newest)} of its tokens, far more than those before.` });
  }
  const starved = recent.filter((s) => s.starved).length;
  if (starved > 0) {
    answers.push({ health: "ill", text: `${starved} of the last ${recent.length} batches had no token left to train on.` });
  }
  if (facts.state === "killed") {
    answers.push({ health: "ill", text: `The run was killed: its process ended without a summary. millrace train ${facts.options} continues it.` });
  }
  if (isRunning && age !== null && age > STALLED_SECONDS) {
    answers.push({ health: "ill", text: `No step has been made for ${seconds(age)}.` });
  }
  const alarms = (now?.alarms?.length ?? 0) + (now?.status?.alarms?.length ?? 0);
  if (alarms > 0) {
    answers.push({ health: "ill", text: `${alarms} ${alarms === 1 ? "alarm rings" : "alarms ring"}.` });
  }
  const order: Health[] = ["ill", "look", "ok", "none"];
  return answers.sort((a, b) => order.indexOf(a.health) - order.indexOf(b.health));
}

function stalenessText(steps: Dict[]): string {
  const recent = steps.slice(-WINDOW);
  const age = mean(column(recent, "staleness_mean"));
  if (age === null) {
    return "Not known: the last batches had no token to train on.";
  }
  const most = Math.max(...column(recent, "staleness_max").map((v) => v ?? 0));
  if (most === 0) {
    return "Not stale: each token is trained on by the weights that sampled it.";
  }
  const flight = mean(column(recent, "staleness_in_flight"));
  const queue = mean(column(recent, "staleness_in_queue"));
  const parts = flight === null || queue === null ? "" : `: ${number(flight, 1)} until they were scored, ${number(queue, 1)} in the queue`;
  const ess = mean(column(recent, "ess"));
  return (
    `Tokens are ${number(age, 1)} versions old when they are trained on, ${number(most, 0)} at most${parts}.` +
    (ess === null ? "" : ` After weighting, a batch is worth ${share(ess)} of its rollouts (ESS).`)
  );
}

function removedText(steps: Dict[], facts: any): string {
  const recent = steps.slice(-WINDOW);
  const tokens = recent.reduce((sum, s) => sum + s.tokens_trainable, 0);
  const gone = removed(recent);
  const over = recent.length === 1 ? "the newest step" : `the last ${recent.length} steps`;
  if (gone === null) {
    return `Not known: the trainer does not report its trainable tokens.`;
  }
  const weighs = stages(recent, WINDOW, facts.stages).filter((s) => s.does === "weighs" && s.changed > 0);
  const weighed = weighs.length === 0 ? "" : ` ${weighs[0]!.name} cut off or zeroed the weights of ${share(weighs[0]!.changed / weighs[0]!.seen)} of them.`;
  if (gone <= 0) {
    return `Nothing: all ${count(tokens)} tokens of ${over} were trained on.${weighed}`;
  }
  const masks = stages(recent, WINDOW, facts.stages)
    .filter((s) => s.does === "masks" && s.changed > 0)
    .sort((a, b) => b.changed - a.changed);
  const by = masks.length === 0 ? "" : masks.length === 1 ? `, by ${masks[0]!.name}` : `, most of it by ${masks[0]!.name}`;
  const newest = removed(recent.slice(-1));
  const rollouts = recent.reduce((sum, s) => sum + s.rollouts_masked, 0);
  const all = recent.reduce((sum, s) => sum + s.rollouts_masked + s.rollouts_trained, 0);
  return `${share(gone)} of the ${count(tokens)} tokens of ${over}${by}. ${rollouts === 0 ? "No rollout" : `${count(rollouts)} of ${count(all)} rollouts`} ${rollouts < 2 ? "was" : "were"} removed entirely.${newest !== null && Math.abs(newest - gone) > 0.1 ? ` The newest step lost ${share(newest)}.` : ""}${weighed}`;
}

export function Verdict(props: { steps: Dict[]; facts: any; now: any; isThere: boolean; age: number | null; isRunning: boolean }) {
  const { steps, facts } = props;
  if (!props.isThere || steps.length === 0) {
    return (
      <div class="verdict" role="status">
        <h1>
          <Mark health="none" /> {facts.state === "failed to start" ? "Failed to start" : props.isThere ? "No step yet" : "Reading the newest steps…"}
        </h1>
        {facts.state === "failed to start" && <p>The process ended before its first step; millrace.log in the run's folder says why.</p>}
        {props.now?.status?.phase && <p>Waiting for {props.now.status.phase}.</p>}
      </div>
    );
  }
  const answers = healthAnswers(steps, facts, props.now, props.age, props.isRunning);
  const health = worst(answers);
  const last = steps.at(-1)!;
  return (
    <div class={`verdict ${health}`} role="status">
      <h1>
        <Mark health={health} /> {health === "ok" ? "No problem found" : health === "look" ? "Worth a look" : "Needs attention"}
        <small>
          {" "}
          step {count((last.batch as number) + 1)}, {clock(last.finished_ms)} UTC
        </small>
      </h1>
      <dl>
        <dt>Is it healthy?</dt>
        <dd>
          {health === "ok" ? "Yes. " : health === "look" ? "Not quite. " : "No. "}
          {answers.map((a) => a.text).join(" ")}
        </dd>
        <dt>How stale is it?</dt>
        <dd>{stalenessText(steps)}</dd>
        <dt>What did the corrections remove?</dt>
        <dd>{removedText(steps, facts)}</dd>
      </dl>
    </div>
  );
}
