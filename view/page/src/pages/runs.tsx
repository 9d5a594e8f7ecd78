import { useEffect, useState } from "preact/hooks";
import { ask, useAnswer } from "../api";
import { Chart } from "../parts/chart";
import { Problem } from "../parts/basics";
import { clock, count, number, seconds } from "../numbers";
import { address, changed, type Route } from "../route";

const METRICS: [string, string][] = [
  ["reward", "reward"],
  ["held_out_reward", "reward on held-out prompts, newest so far"],
  ["staleness_mean", "staleness, versions"],
  ["ess_ratio", "effective sample size"],
  ["second_moment", "second moment"],
  ["approx_kl_behavior", "KL, behavior to current"],
  ["entropy", "entropy"],
  ["response_tokens_mean", "response length"],
  ["grad_norm", "gradient norm"],
  ["trained_share", "share of tokens trained on"],
];
const OVERS: [string, string][] = [
  ["steps", "steps"],
  ["time", "seconds since the first step"],
  ["tokens", "tokens trained on"],
];
const POINTS = 400;

export function RunsPage({ route }: { route: Route }) {
  const asked = useAnswer("runs");
  const runs: any[] = asked.data?.runs ?? [];
  const chosen = (route.query.get("with") ?? "").split(",").filter((name) => name !== "");
  const metric = route.query.get("of") ?? "reward";
  const over = route.query.get("over") ?? "steps";
  const courses = useCourses(chosen);
  const go = (values: Record<string, string | null>) => (location.hash = changed(route, values));
  const toggle = (name: string) => go({ with: (chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]).join(",") });
  const there = chosen.filter((name) => courses[name]?.course);
  const { x, lines } = overlay(
    there.map((name) => ({ name, course: courses[name]!.course })),
    metric,
    over,
  );
  return (
    <>
      <h1>Runs</h1>
      <Problem text={asked.problem} />
      <p class="about">A run's name opens it. Tick runs to compare them.</p>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">compare</th>
              <th scope="col">run</th>
              <th scope="col">state</th>
              <th scope="col">why it ended</th>
              <th scope="col">start, UTC</th>
              <th scope="col" class="num">
                duration
              </th>
              <th scope="col">task</th>
              <th scope="col">model</th>
              <th scope="col" class="num">
                steps
              </th>
              <th scope="col" class="num">
                reward, last
              </th>
              <th scope="col" class="num">
                best
              </th>
              <th scope="col" class="num">
                staleness
              </th>
              <th scope="col" class="num">
                ESS, median
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <tr key={run.name}>
                <td>
                  <input type="checkbox" aria-label={`compare ${run.name}`} checked={chosen.includes(run.name)} onChange={() => toggle(run.name)} />
                </td>
                <th scope="row">
                  <a href={address(run.name, "now")}>{run.name}</a>
                </th>
                <td>{run.state}</td>
                <td>{run.summary ? (run.summary.goal_reached ? "the goal was reached" : run.summary.stopped_because) : ""}</td>
                <td class="when">{clock(run.course?.started_ms)}</td>
                <td class="num">{seconds(run.course?.finished_ms === undefined ? null : (run.course.finished_ms - run.course.started_ms) / 1000)}</td>
                <td>{run.task_kind ?? "–"}</td>
                <td class="when">{run.model ?? "–"}</td>
                <td class="num">{count(run.summary?.steps ?? run.course?.steps)}</td>
                <td class="num">{number(run.summary?.reward?.last ?? run.course?.reward)}</td>
                <td class="num">{number(run.summary?.reward?.best)}</td>
                <td class="num">{number(run.summary?.staleness?.mean, 2)}</td>
                <td class="num">{number(run.summary?.ess?.median, 2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {asked.data && runs.length === 0 && <p class="none">No run yet; ./millrace train starts one.</p>}
      {chosen.map((name) => courses[name]?.problem && <Problem key={name} text={`${name}: ${courses[name]!.problem}`} />)}
      {there.length > 0 && (
        <>
          <p class="filters">
            <label>
              of{" "}
              <select value={metric} onChange={(e) => go({ of: e.currentTarget.value })}>
                {METRICS.map(([key, name]) => (
                  <option key={key} value={key}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              over{" "}
              <select value={over} onChange={(e) => go({ over: e.currentTarget.value })}>
                {OVERS.map(([key, name]) => (
                  <option key={key} value={key}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          </p>
          <div class="charts wide">
            <Chart title={METRICS.find(([key]) => key === metric)?.[1] ?? metric} x={x} xLabel={over === "time" ? "second" : over === "tokens" ? "tokens" : "step"} height={360} lines={lines} rest="last" />
          </div>
          <Settings runs={there.map((name) => ({ name, settings: courses[name]!.course.settings }))} />
        </>
      )}
    </>
  );
}

function useCourses(names: string[]): Record<string, { course: any; problem: string }> {
  const [courses, set] = useState<Record<string, { course: any; problem: string }>>({});
  useEffect(() => {
    for (const name of names) {
      if (!courses[name]) {
        ask(`runs/${encodeURIComponent(name)}/course`).then(
          (course) => set((all) => ({ ...all, [name]: course.reward ? { course, problem: "" } : { course: null, problem: course.problem ?? "its steps are not indexed yet; open it once" } })),
          (e) => set((all) => ({ ...all, [name]: { course: null, problem: String(e.message ?? e) } })),
        );
      }
    }
  }, [names.join()]);
  return courses;
}

/**
 * All runs on one axis, up to each run's last step: a value is taken at the nearest lower step, second or token count.
 */
export function overlay(runs: { name: string; course: any }[], metric: string, over: string) {
  const axes = runs.map(({ course }) => {
    const first = course.started_at_ms[0] ?? course.finished_at_ms[0];
    return over === "time" ? course.finished_at_ms.map((ms: number) => (ms - first) / 1000) : over === "tokens" ? course.tokens : course.step;
  });
  const ends = axes.map((axis) => axis.at(-1) ?? 0);
  const end = Math.max(...ends, 1);
  const x = over === "steps" && end <= 2000 ? Array.from({ length: end }, (_, i) => i + 1) : Array.from({ length: POINTS }, (_, i) => ((i + 1) * end) / POINTS);
  const lines = runs.map(({ name, course }, r) => {
    const axis: number[] = axes[r];
    const values: (number | null)[] = course[metric];
    let at = -1;
    return {
      label: name,
      look: r,
      sparse: true,
      values: x.map((where) => {
        while (at + 1 < axis.length && axis[at + 1]! <= where + 1e-9) {
          at++;
        }
        return where > ends[r]! + end / POINTS ? undefined : at < 0 ? null : (values[at] ?? null); // a shorter run ends before
      }),
    };
  });
  return { x, lines };
}

function Settings({ runs }: { runs: { name: string; settings: Record<string, string> }[] }) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings ?? {})))];
  return (
    <div class="scroll">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">setting</th>
            {runs.map((run) => (
              <th key={run.name} scope="col">
                {run.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key} class={new Set(runs.map((run) => run.settings?.[key]).filter((known) => known !== undefined)).size > 1 ? "changed" : ""}>
              <th scope="row">
                <code>{key}</code>
              </th>
              {runs.map((run) => (
                <td key={run.name}>{run.settings?.[key] ?? "–"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
