package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.topology.TopologyBenchmark;
import dev.millrace.workloads.topology.TopologyBenchmark.TopologyReport;
import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test topology}: the topology against a raw copy of the same bytes, and against its goals. */
@Command(
        name = "topology",
        description = "Compares the topology with a raw transactional copy of the same bytes, on its own broker: "
                + "throughput, bytes written, added latency, restarts, memory.",
        footer = {
            "",
            "Takes a few minutes with --quick, half an hour without. Exit codes: 0 every goal holds; 1 one is missed."
        })
public final class TopologyCommand extends BenchmarkCommand {

    @Option(names = "--quick", description = "One thread, 512 tokens, small backlogs, short loads.")
    private boolean quick;

    @Option(
            names = "--repetitions",
            paramLabel = "N",
            description = "Repetitions of each case (default: 5, with --quick 3).")
    private Integer repetitions;

    @Option(
            names = "--only",
            split = ",",
            paramLabel = "PART",
            description = "Measure only this: ${COMPLETION-CANDIDATES} (default: all of it). May be repeated.")
    private List<TopologyBenchmark.Part> only = List.of();

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (repetitions != null && repetitions < 1) {
            throw new RefusedRequestException("--repetitions must be at least 1: " + repetitions);
        }
        TopologyBenchmark.Plan asked = quick ? TopologyBenchmark.Plan.quick() : TopologyBenchmark.Plan.whole();
        if (repetitions != null) {
            asked = asked.withRepetitions(repetitions);
        }
        TopologyBenchmark.Plan plan = only.isEmpty() ? asked : asked.only(EnumSet.copyOf(only));
        return run(
                (scratch, progress) -> {
                    progress.accept("starts and warms up a broker; then prints a line per measurement");
                    return new TopologyBenchmark(plan, scratch, progress).run(TypedCommand.of(spec));
                },
                TopologyReport::of,
                TopologyBenchmark.Report::goals);
    }
}
