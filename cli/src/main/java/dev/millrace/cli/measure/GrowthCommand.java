package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.topology.GrowthBenchmark;
import dev.millrace.workloads.topology.GrowthBenchmark.Dimension;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test growth}: what a rollout costs the topology as the load grows. */
@Command(
        name = "growth",
        description =
                "Measures processor time and bytes on the log per rollout, on its own broker. Varies rollouts, partitions, "
                        + "instances and response tokens one at a time, and fits an exponent to each.",
        footer = {
            "",
            "Takes a quarter of an hour or so. Figures for millrace plan. Exit codes: 0 no cost grows beyond its bound; "
                    + "1 one does."
        })
public final class GrowthCommand extends BenchmarkCommand {

    @Option(
            names = "--rollouts",
            paramLabel = "N",
            split = ",",
            defaultValue = "1024,10240,102400",
            description = "Sizes of the backlog, in whole batches, up to 1000000 (default: ${DEFAULT-VALUE}).")
    private List<Integer> rollouts;

    @Option(
            names = "--partitions",
            paramLabel = "N",
            split = ",",
            defaultValue = "1,4,16,64",
            description = "Partitions of rollouts and scores (default: ${DEFAULT-VALUE}).")
    private List<Integer> partitions;

    @Option(
            names = "--instances",
            paramLabel = "N",
            split = ",",
            defaultValue = "1,2,4",
            description = "Instances of the topology, of one thread each (default: ${DEFAULT-VALUE}).")
    private List<Integer> instances;

    @Option(
            names = "--tokens",
            paramLabel = "N",
            split = ",",
            defaultValue = "128,512,2048,8192,32768",
            description = "Lengths of responses; longer ones have smaller backlogs (default: ${DEFAULT-VALUE}).")
    private List<Integer> tokens;

    @Option(names = "--repetitions", paramLabel = "N", description = "Repetitions of each point (default: 3).")
    private int repetitions = 3;

    @Override
    public Integer call() throws IOException, InterruptedException {
        GrowthBenchmark.Plan plan;
        try {
            plan = new GrowthBenchmark.Plan(
                    Map.of(
                            Dimension.ROLLOUTS,
                            rollouts,
                            Dimension.PARTITIONS,
                            partitions,
                            Dimension.INSTANCES,
                            instances,
                            Dimension.RESPONSE_TOKENS,
                            tokens),
                    repetitions);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        return run(
                (scratch, progress) -> new GrowthBenchmark(plan, scratch, progress).run(TypedCommand.of(spec)),
                GrowthBenchmark::page,
                GrowthBenchmark.Report::goals);
    }
}
