// Reports of one run or of all runs, each opened as its own page.
import { useAnswer } from "../api";
import { Mark, Problem, type Health } from "../parts/basics";
import { clock } from "../numbers";
import { address, changed, type Route } from "../route";
import { ReportPage } from "./report";

interface Listed {
  id: string;
  title: string;
  asked: string;
  answer: string;
  health: string;
  command: string;
  written_ms: number;
  run: string | null;
}

const HEALTH: Record<string, Health> = { OK: "ok", LOOK: "look", ILL: "ill", NONE: "none" };

export function ReportsPage({ run, route }: { run: string | null; route: Route }) {
  const id = route.query.get("id");
  return id === null ? <List run={run} route={route} /> : <One id={id} route={route} />;
}

function One({ id, route }: { id: string; route: Route }) {
  const asked = useAnswer(`report?id=${encodeURIComponent(id)}`);
  return (
    <>
      <p>
        <a href={changed(route, { id: null })}>All reports</a> <span class="about">{id}</span>
      </p>
      <Problem text={asked.problem} />
      {asked.data?.report && <ReportPage report={asked.data.report} />}
    </>
  );
}

function List({ run, route }: { run: string | null; route: Route }) {
  const asked = useAnswer("reports");
  const all: Listed[] = asked.data?.reports ?? [];
  const own = all.filter((report) => run !== null && report.run === run);
  const others = run === null ? all : all.filter((report) => report.run !== run);
  return (
    <>
      <h1>Reports</h1>
      <p class="about">Written by replay, doctor, load-test and experiment with --report, in a run's folder or under {(asked.data?.folders ?? []).join(", ") || "reports"}.</p>
      <Problem text={asked.problem} />
      {run !== null && asked.data && own.length === 0 && (
        <p class="none">
          There is no report of this run yet. <code>./millrace doctor --run-dir RUN --report reports/doctor</code> makes one, and so does replay with --corrections.
        </p>
      )}
      {own.length > 0 && <Table reports={own} route={route} of={run} />}
      {run !== null && others.length > 0 && <h2>Other reports</h2>}
      {others.length > 0 && <Table reports={others} route={route} of={run} />}
      {run === null && asked.data && all.length === 0 && <p class="none">There is no report here yet.</p>}
    </>
  );
}

function Table({ reports, route, of }: { reports: Listed[]; route: Route; of: string | null }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="reports">
      <table class="list reports">
        <thead>
          <tr>
            <th scope="col">report</th>
            <th scope="col">conclusion</th>
            <th scope="col">of</th>
            <th scope="col">written, UTC</th>
          </tr>
        </thead>
        <tbody>
          {reports.map((report) => (
            <tr key={report.id}>
              <th scope="row">
                <a href={changed(route, { id: report.id })}>{report.title}</a>
                <div class="about">{report.id}</div>
              </th>
              <td>
                {report.answer && <Mark health={HEALTH[report.health] ?? "none"} />} {report.asked && <span class="about">{report.asked} </span>}
                {report.answer}
              </td>
              <td>{report.run === null ? "–" : report.run === of ? "this run" : <a href={address(report.run, "now")}>{report.run}</a>}</td>
              <td class="when">{clock(report.written_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
