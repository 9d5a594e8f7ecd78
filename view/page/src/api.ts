// What the server answers, and what is new of a run. A saved page has its answers in itself and asks nobody.
import { useEffect, useState } from "preact/hooks";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Dict = { [key: string]: any };

const saved: Dict | null = (() => {
  const element = document.getElementById("saved");
  return element ? JSON.parse(element.textContent ?? "{}") : null;
})();

export const isSaved = saved !== null;
export const savedAt: string = saved ? saved.at : "";
/** Answers of this page, by their addresses, for saving it. */
export const taken = new Map<string, Json>();

export class Problem extends Error {}

export async function ask(path: string): Promise<any> {
  if (saved) {
    if (path in saved.answers) {
      return saved.answers[path];
    }
    throw new Problem("This is a saved page; it has only what was shown when it was saved.");
  }
  let answer: Response;
  try {
    answer = await fetch(`/api/${path}`, { headers: { Accept: "application/json" } });
  } catch {
    throw new Problem("The view has ended. Start './millrace view' again and reload this page.");
  }
  const json = await answer.json();
  if (!answer.ok) {
    throw new Problem(json.problem ?? `the view answered ${answer.status}`);
  }
  taken.set(path, json);
  return json;
}

export interface Asked {
  data: any;
  problem: string;
  isAsking: boolean;
}

/** An answer that is asked for again whenever one of the given values changes; the old one stays until the new one is there. */
export function useAnswer(path: string | null, ...when: unknown[]): Asked {
  const [state, set] = useState<{ path: string | null } & Asked>({ path: null, data: null, problem: "", isAsking: true });
  useEffect(() => {
    if (path === null) {
      set({ path, data: null, problem: "", isAsking: false });
      return;
    }
    let isOld = false;
    set((before) => ({ ...before, isAsking: true }));
    ask(path).then(
      (data) => isOld || set({ path, data, problem: "", isAsking: false }),
      (e) => isOld || set((before) => ({ path, data: before.path === path ? before.data : null, problem: String(e.message ?? e), isAsking: false })),
    );
    return () => {
      isOld = true;
    };
  }, [path, ...when]);
  return state.path === path || state.data === null ? state : { ...state, isAsking: true };
}

export interface News {
  steps: number;
  state: number;
  status: number;
  index: { read: number; end: number; whole: boolean } | null;
  isConnected: boolean;
}

/** How often a page that lost its server tries again, a second apart; it tries anew when it is next seen. */
const RETRIES = 30;

/** Counts what is new of a run, by kind, so that answers can be asked for again. A hidden page closes its stream and opens it when it is seen again; after the event "end" nobody is asked any more. */
export function useNews(run: string | null): News {
  const [news, set] = useState<News>({ steps: 0, state: 0, status: 0, index: null, isConnected: !isSaved });
  useEffect(() => {
    if (run === null || isSaved) {
      return;
    }
    const count = (kind: "steps" | "state" | "status") => () => set((n) => ({ ...n, [kind]: n[kind] + 1 }));
    let isOver = false;
    const listen = () => {
      let failures = 0;
      const source = new EventSource(`/api/runs/${encodeURIComponent(run)}/events`);
      source.addEventListener("steps", count("steps"));
      source.addEventListener("state", count("state"));
      source.addEventListener("status", count("status"));
      source.addEventListener("end", () => {
        isOver = true;
        source.close();
      });
      source.addEventListener("index", (event) => set((n) => ({ ...n, index: JSON.parse(event.data) })));
      source.onopen = () => {
        failures = 0;
        set((n) => ({ ...n, isConnected: true, state: n.state + 1, steps: n.steps + 1 }));
      };
      source.onerror = () => {
        if (++failures > RETRIES) {
          source.close();
        }
        set((n) => ({ ...n, isConnected: false }));
      };
      return source;
    };
    let source: EventSource | null = null;
    const look = () => {
      source?.close();
      source = document.hidden || isOver ? null : listen();
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      source?.close();
    };
  }, [run]);
  return news;
}

/** Every answer and the page itself, as one file. */
export async function save(title: string) {
  const page = await (await fetch("/")).text();
  const answers = Object.fromEntries(taken);
  const data = JSON.stringify({ at: new Date().toISOString(), hash: location.hash, answers }).replaceAll("<", "\\u003c");
  const whole = page.replace("<div id=\"page\">", () => `<script id="saved" type="application/json">${data}</script><div id="page">`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([whole], { type: "text/html" }));
  link.download = `${title.replaceAll(/[^A-Za-z0-9._-]+/g, "-")}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const savedHash: string = saved ? saved.hash : "";
/** The report that this file is; null for any other page. */
export const savedReport: any = saved?.answers?.report ?? null;
