import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isSaved, save, savedAt, savedHash, savedReport, useAnswer, useNews, type News } from "./api";
import { address, useRoute, type Route } from "./route";
import { Problem } from "./parts/basics";
import { ChainPage } from "./pages/chain";
import { LedgerPage } from "./pages/ledger";
import { NowPage } from "./pages/now";
import { ReportPage } from "./pages/report";
import { ReportsPage } from "./pages/reports";
import { RolloutsPage } from "./pages/rollouts";
import { RunsPage } from "./pages/runs";
import { WeightsPage } from "./pages/weights";

export interface PageProps {
  run: string;
  route: Route;
  news: News;
  facts: any;
}

const PAGES: { key: string; title: string; view: (props: PageProps) => any }[] = [
  { key: "now", title: "Now", view: (props) => <NowPage {...props} /> },
  { key: "rollouts", title: "Rollouts", view: (props) => <RolloutsPage {...props} /> },
  { key: "chain", title: "The chain", view: (props) => <ChainPage {...props} /> },
  { key: "ledger", title: "Ledger", view: (props) => <LedgerPage {...props} /> },
  { key: "weights", title: "Weights", view: (props) => <WeightsPage {...props} /> },
  { key: "reports", title: "Reports", view: (props) => <ReportsPage run={props.run} route={props.route} /> },
];

if (isSaved && location.hash === "") {
  location.hash = savedHash;
}

/** A report that is a file of its own: the same page, with nothing in it but the report. */
function Reported({ report }: { report: any }) {
  useEffect(() => {
    document.title = `${report.title} – Millrace`;
  }, []);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        to the content
      </a>
      <header>
        <span class="brand">Millrace</span>
        <span class="space" />
        <Theme />
      </header>
      <main id="main" tabIndex={-1}>
        <ReportPage report={report} />
      </main>
    </>
  );
}

function App() {
  const route = useRoute();
  const news = useNews(route.run);
  const facts = useAnswer(route.run === null ? null : `runs/${encodeURIComponent(route.run)}/facts`, news.state, news.isConnected);
  const page = PAGES.find((p) => p.key === route.page) ?? PAGES[0]!;
  const title = route.run !== null ? `${route.run}, ${page.title}` : route.page === "reports" ? "Reports" : "Runs";
  useEffect(() => {
    document.title = `${title} – Millrace`;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        to the content
      </a>
      <header>
        <a class="brand" href={address(null, "")}>
          Millrace
        </a>
        {route.run !== null && (
          <>
            <span class="run">{route.run}</span>
            <State facts={facts.data} news={news} />
          </>
        )}
        <span class="space" />
        {!isSaved && (
          <button type="button" onClick={() => void save(`millrace ${title}`)} title="The page as it is now, as one file that needs no network">
            save page
          </button>
        )}
        <Theme />
      </header>
      {isSaved && <p class="saved">Saved {savedAt.replace("T", " ").slice(0, 19)} UTC. It does not update.</p>}
      {route.run === null ? (
        <nav aria-label="Pages">
          <a href={address(null, "runs")} aria-current={route.page === "runs" ? "page" : undefined}>
            Runs
          </a>
          <a href={address(null, "reports")} aria-current={route.page === "reports" ? "page" : undefined}>
            Reports
          </a>
        </nav>
      ) : (
        <nav aria-label="Pages of the run">
          <a href={address(null, "runs")}>Runs</a>
          {PAGES.map((p) => (
            <a key={p.key} href={address(route.run, p.key)} aria-current={p.key === page.key ? "page" : undefined}>
              {p.title}
            </a>
          ))}
        </nav>
      )}
      <main id="main" tabIndex={-1}>
        {route.run === null && route.page === "reports" ? (
          <ReportsPage run={null} route={route} />
        ) : route.run === null ? (
          <RunsPage route={route} />
        ) : (
          <>
            <Problem text={facts.problem || facts.data?.problem || ""} />
            {facts.data?.ended && (
              <p class="note" role="status">
                The run {facts.data.ended}. <code>./millrace view {facts.data.options}</code> shows it again.
              </p>
            )}
            {facts.data && facts.data.run_id === undefined && !facts.problem && !facts.data.problem && <p class="none">Opening the run…</p>}
            {facts.data?.run_id !== undefined && page.view({ run: route.run, route, news, facts: facts.data })}
          </>
        )}
      </main>
      <footer>
        {facts.data?.options && route.run !== null ? <code>./millrace view {facts.data.options}</code> : <code>./millrace view</code>}
      </footer>
    </>
  );
}

function State({ facts, news }: { facts: any; news: News }) {
  if (!facts) {
    return null;
  }
  const index = news.index ?? facts.index;
  const whole = index?.whole || isSaved;
  return (
    <>
      <span class={`state ${facts.state === "running" ? "live" : facts.state === "killed" || facts.state === "failed to start" ? "killed" : ""}`}>{isSaved || news.isConnected ? facts.state : "the view has ended"}</span>
      {!whole && index && index.end > 0 && (
        <span class="progress" title="Reading rollouts into the index on this machine; steps are complete.">
          <progress max={index.end} value={index.read} aria-label="index" /> {Math.floor((100 * index.read) / index.end)} %
        </span>
      )}
    </>
  );
}

function Theme() {
  const [chosen, set] = useState(() => {
    try {
      return localStorage.getItem("theme") ?? "";
    } catch {
      return "";
    }
  });
  useEffect(() => {
    if (chosen) {
      document.documentElement.dataset.theme = chosen;
    } else {
      delete document.documentElement.dataset.theme;
    }
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // a saved page may have no storage
    }
    dispatchEvent(new Event("themechange"));
  }, [chosen]);
  const next = chosen === "" ? "dark" : chosen === "dark" ? "light" : "";
  return (
    <button type="button" onClick={() => set(next)} aria-label={`colours: ${chosen || "as the system"}; change`}>
      colours: {chosen || "auto"}
    </button>
  );
}

render(savedReport ? <Reported report={savedReport} /> : <App />, document.getElementById("page")!);
