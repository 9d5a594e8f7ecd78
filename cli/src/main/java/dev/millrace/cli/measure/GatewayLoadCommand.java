package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.closed.GatewayBenchmark;
import dev.millrace.workloads.closed.GatewayBenchmark.GatewayLoadReport;
import java.io.IOException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test gateway}: what a gateway adds to agents' calls. */
@Command(
        name = "gateway",
        description = "Compares agents' calls through a gateway with direct calls of the same engine double, on its "
                + "own broker.",
        footer = {"", "Takes three minutes or so. Exit codes: 0 every goal holds; 1 one is missed."})
public final class GatewayLoadCommand extends BenchmarkCommand {

    @Option(names = "--agents", paramLabel = "N", description = "Agents that play side by side (default: 200).")
    private int agents = 200;

    @Option(
            names = "--open",
            paramLabel = "N",
            description = "Further sessions that are open meanwhile (default: 2000).")
    private int open = 2000;

    @Option(names = "--latency-ms", paramLabel = "N", description = "How long the engine double takes (default: 500).")
    private long latencyMs = 500;

    @Option(
            names = "--think-ms",
            paramLabel = "N",
            description = "Mean of an agent's pauses between calls (default: 500).")
    private long thinkMs = 500;

    @Option(names = "--seconds", paramLabel = "N", description = "Length of each measurement (default: 20).")
    private int seconds = 20;

    @Option(names = "--repetitions", paramLabel = "N", description = "Repetitions of each (default: 3).")
    private int repetitions = 3;

    @Override
    public Integer call() throws IOException, InterruptedException {
        GatewayBenchmark.Plan plan;
        try {
            plan = new GatewayBenchmark.Plan(agents, open, latencyMs, thinkMs, seconds, repetitions);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        return run(
                (scratch, progress) -> new GatewayBenchmark(plan, scratch, progress).run(TypedCommand.of(spec)),
                GatewayLoadReport::of,
                GatewayBenchmark.Report::goals);
    }
}
