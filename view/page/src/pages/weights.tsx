import { useAnswer } from "../api";
import { Chart } from "../parts/chart";
import { Problem, Section } from "../parts/basics";
import { bytes, clock, count, mean, number, seconds } from "../numbers";
import { address } from "../route";
import type { PageProps } from "../main";

export function WeightsPage({ run, news }: PageProps) {
  const path = `runs/${encodeURIComponent(run)}`;
  const answer = useAnswer(`${path}/weights`, Math.floor(news.steps / 2), news.state);
  const now = useAnswer(`${path}/now`, Math.floor(news.steps / 2));
  const versions: any[] = answer.data?.versions ?? [];
  const served: any[] = answer.data?.served ?? [];
  const servers = [...new Set(served.map((s) => s.server))].sort();
  const x = versions.map((v) => v.version);
  const delays = (server: string) => {
    const since = new Map(served.filter((s) => s.server === server).map((s) => [s.version, s.since_ms]));
    return versions.map((v) => (since.has(v.version) ? Math.max(0, (since.get(v.version) - v.published_ms) / 1000) : null));
  };
  const whole = versions.filter((v) => v.base === null);
  const deltas = versions.filter((v) => v.base !== null);
  return (
    <>
      <h1>Weights</h1>
      <Problem text={answer.problem} />
      {answer.data && versions.length === 0 && <p class="none">No version has been published yet.</p>}
      {versions.length > 0 && (
        <>
          <p>
            {count(versions.length)} versions, {versions[0].version} to {versions.at(-1).version}: {count(whole.length)} whole of {bytes(mean(whole.map((v) => v.bytes)))} on average
            {deltas.length > 0 && `, ${count(deltas.length)} deltas of ${bytes(mean(deltas.map((v) => v.bytes)))}`}.
          </p>
          <Section title="From publication to service" about="Seconds from a version's publication until a server reports serving it. A version that a server skipped has no point.">
            <div class="charts wide">
              <Chart title="Publish to serve" x={x} xLabel="version" from={0} height={220} format={seconds} lines={servers.map((server) => ({ label: server, values: delays(server) }))} />
            </div>
          </Section>
          <Section title="Who serves what">
            <div class="scroll">
              <table class="list">
                <thead>
                  <tr>
                    <th scope="col">server</th>
                    <th scope="col">role</th>
                    <th scope="col" class="num">
                      version
                    </th>
                    <th scope="col">since</th>
                    <th scope="col" class="num">
                      publish to serve, mean
                    </th>
                    <th scope="col" class="num">
                      versions skipped
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {(now.data?.servers ?? []).map((server: any) => (
                    <tr key={server.server}>
                      <th scope="row">{server.server}</th>
                      <td>{server.role.toLowerCase()}</td>
                      <td class="num">{server.version}</td>
                      <td>{server.left ? "it has left" : clock(server.since_ms)}</td>
                      <td class="num">{seconds(mean(delays(server.server)))}</td>
                      <td class="num">{count(delays(server.server).filter((d) => d === null).length)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Section>
          <Section title="Size on the log">
            <div class="charts wide">
              <Chart
                title="Bytes of a version"
                x={x}
                xLabel="version"
                from={0}
                format={(v) => bytes(v)}
                lines={[
                  { label: "weights", values: versions.map((v) => v.bytes) },
                  { label: "optimiser", values: versions.map((v) => v.optimizer_bytes) },
                ]}
              />
            </div>
          </Section>
          <Section title="Versions">
            <div class="scroll">
              <table class="list">
                <thead>
                  <tr>
                    <th scope="col" class="num">
                      version
                    </th>
                    <th scope="col">published</th>
                    <th scope="col">made by</th>
                    <th scope="col">kind</th>
                    <th scope="col" class="num">
                      size
                    </th>
                    <th scope="col">identity</th>
                    <th scope="col">place</th>
                  </tr>
                </thead>
                <tbody>
                  {[...versions]
                    .reverse()
                    .slice(0, 100)
                    .map((v) => (
                      <tr key={v.version}>
                        <td class="num">{v.version}</td>
                        <td>{clock(v.published_ms)}</td>
                        <td>{v.batch < 0 ? "the beginning" : <a href={address(run, "chain", { batch: v.batch })}>batch {v.batch}</a>}</td>
                        <td>{v.base === null ? "whole" : `delta to ${number(v.base)}`}</td>
                        <td class="num">{bytes(v.bytes)}</td>
                        <td>
                          <code>{v.sha256.slice(0, 12)}</code>
                        </td>
                        <td>
                          <code>{v.place}</code>
                        </td>
                      </tr>
                    ))}
                </tbody>
              </table>
            </div>
          </Section>
        </>
      )}
    </>
  );
}
