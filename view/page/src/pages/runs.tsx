import { useAnswer } from "../api";
import { Problem } from "../parts/basics";
import { number } from "../numbers";
import { address, type Route } from "../route";

export function RunsPage(_: { route: Route }) {
  const asked = useAnswer("runs");
  const runs: any[] = asked.data?.runs ?? [];
  return (
    <>
      <h1>Runs</h1>
      <Problem text={asked.problem} />
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">run</th>
              <th scope="col">state</th>
              <th scope="col" class="num">
                steps
              </th>
              <th scope="col" class="num">
                reward at the end
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <tr key={run.name}>
                <th scope="row">
                  <a href={address(run.name, "now")}>{run.name}</a>
                </th>
                <td>{run.state}</td>
                <td class="num">{number(run.summary?.steps)}</td>
                <td class="num">{number(run.summary?.reward?.last)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {asked.data && runs.length === 0 && <p class="none">There is no run here yet. ./millrace train makes one.</p>}
    </>
  );
}
