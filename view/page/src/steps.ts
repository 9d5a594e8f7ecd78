// The steps of a run, kept up as new ones come: only what is new is asked for.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, isSaved, taken, type Dict } from "./api";

export interface Steps {
  steps: Dict[];
  count: number;
  problem: string;
  isThere: boolean;
}

const MOST_ADDED = 300;

const fresh = (run: string) => ({ run, steps: [] as Dict[], every: 1, whole: 0, added: 0, count: 0, asking: false, again: false });

export function useSteps(run: string, news: unknown): Steps {
  const [state, set] = useState<Steps>({ steps: [], count: 0, problem: "", isThere: false });
  const of = useRef(fresh(run));
  useEffect(() => {
    if (of.current.run !== run) {
      of.current = fresh(run);
      set({ steps: [], count: 0, problem: "", isThere: false });
    }
    const mine = of.current;
    const path = `runs/${encodeURIComponent(run)}/steps`;
    const more = async () => {
      if (mine.asking) {
        mine.again = true;
        return;
      }
      mine.asking = true;
      try {
        if (mine.steps.length === 0 && !isSaved) {
          // the newest first: all steps of a long run take a moment
          const newest = await ask(`${path}?newest=1`);
          taken.delete(`${path}?newest=1`);
          if (of.current === mine && newest.steps?.length > 0) {
            set({ steps: newest.steps, count: newest.all, problem: "", isThere: true });
          }
        }
        do {
          mine.again = false;
          const last = mine.steps.at(-1)?.batch ?? -1;
          // of a long run every so many steps are there, and behind them what came since; they are thinned again now and then
          const grown = mine.steps.length > 0 && mine.added < (mine.every === 1 ? 1900 - mine.whole : MOST_ADDED);
          const answer = await ask(isSaved || !grown ? path : `${path}?after=${last}`);
          if (of.current !== mine || !answer.steps) {
            return;
          }
          taken.delete(`${path}?after=${last}`);
          if (grown && answer.all !== mine.count + answer.count) {
            mine.added = Infinity; // older ones were read into the index meanwhile
            mine.again = true;
            continue;
          }
          mine.every = grown ? mine.every : answer.every;
          mine.steps = grown ? [...mine.steps, ...answer.steps] : answer.steps;
          mine.added = grown ? mine.added + answer.steps.length : 0;
          mine.whole = grown ? mine.whole : answer.steps.length;
          mine.count = grown ? mine.count + answer.count : answer.count;
          taken.set(path, { count: mine.count, every: mine.every, steps: mine.steps } as any);
          set({ steps: mine.steps, count: mine.count, problem: "", isThere: true });
        } while (mine.again);
      } catch (e: any) {
        set((before) => ({ ...before, problem: String(e.message ?? e) }));
      } finally {
        mine.asking = false;
      }
    };
    void more();
  }, [run, news]);
  return state;
}

/** A number of every step: a field, or a metric of the training log. */
export function column(steps: Dict[], name: string): (number | null)[] {
  return steps.map((step) => value(step, name));
}

export function value(step: Dict | undefined, name: string): number | null {
  if (!step) {
    return null;
  }
  const found = name in step ? step[name] : step.metrics[name];
  return typeof found === "number" ? found : null;
}

export interface Stage {
  name: string;
  /** masks, weighs, credits, scales or measures */
  does: string;
  seen: number;
  changed: number;
  sequencesSeen: number;
  sequencesChanged: number;
  shares: (number | null)[];
}

/** What each stage saw and changed, by the reports in the training log; totals over the newest steps. */
export function stages(steps: Dict[], newest: number, order: { name: string; does: string }[] = []): Stage[] {
  const names = new Set<string>();
  for (const step of steps.slice(-newest)) {
    for (const key of Object.keys(step.metrics)) {
      const match = /^(?:recorded\.)?stage\.(.+)\.tokens_changed$/.exec(key);
      if (match) {
        names.add(match[1] as string);
      }
    }
  }
  const of = (step: Dict, name: string, figure: string) => value(step, `stage.${name}.${figure}`) ?? value(step, `recorded.stage.${name}.${figure}`);
  const place = (name: string) => {
    const found = order.findIndex((stage) => stage.name === name);
    return found < 0 ? order.length : found;
  };
  const sorted = [...names].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  return sorted.map((name) => {
    const stage: Stage = { name, does: order.find((s) => s.name === name)?.does ?? "measures", seen: 0, changed: 0, sequencesSeen: 0, sequencesChanged: 0, shares: [] };
    for (const step of steps.slice(-newest)) {
      stage.seen += of(step, name, "tokens_seen") ?? 0;
      stage.changed += of(step, name, "tokens_changed") ?? 0;
      stage.sequencesSeen += of(step, name, "sequences_seen") ?? 0;
      stage.sequencesChanged += of(step, name, "sequences_changed") ?? 0;
    }
    stage.shares = steps.map((step) => {
      const seen = of(step, name, "tokens_seen");
      const changed = of(step, name, "tokens_changed");
      return seen && changed !== null ? changed / seen : null;
    });
    return stage;
  });
}
