// Links are addresses: everything that is shown is a function of what stands behind the #.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  run: string | null;
  page: string;
  query: URLSearchParams;
}

function parse(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [run = "", page = ""] = path.split("/").map(decodeURIComponent);
  if ((run === "runs" || run === "reports") && page === "") {
    return { run: null, page: run, query: new URLSearchParams(query) };
  }
  return { run: run === "" ? null : run, page: page === "" ? (run === "" ? "runs" : "now") : page, query: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, set] = useState(parse);
  useEffect(() => {
    const changed = () => set(parse());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export function address(run: string | null, page: string, query: Record<string, string | number | null | undefined> = {}): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") {
      values.set(name, String(value));
    }
  }
  const text = values.toString();
  return `#/${run === null ? "" : `${encodeURIComponent(run)}/`}${page}${text ? `?${text}` : ""}`;
}

/** The same page with some values changed. */
export function changed(route: Route, query: Record<string, string | number | null | undefined>): string {
  return address(route.run, route.page, { ...Object.fromEntries(route.query), ...query });
}
