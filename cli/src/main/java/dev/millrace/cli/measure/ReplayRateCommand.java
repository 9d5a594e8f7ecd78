package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.topology.ReplayBenchmark;
import dev.millrace.workloads.topology.ReplayBenchmark.ReplayRateReport;
import java.io.IOException;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test replay}: compares replays with the live topology over the same records. */
@Command(
        name = "replay",
        description = "Compares replays, as recorded and with corrections, with the live topology of the run, on "
                + "its own broker.",
        footer = {"", "Takes four minutes or so. Exit codes: 0 the goal holds; 1 it is missed."})
public final class ReplayRateCommand extends BenchmarkCommand {

    @Option(
            names = "--tokens",
            paramLabel = "N",
            split = ",",
            description = "Lengths of responses (default: 512,4096).")
    private List<Integer> tokens = List.of(512, 4096);

    @Option(
            names = "--megabytes",
            paramLabel = "N",
            split = ",",
            description = "Sizes of runs, rollouts and scores together (default: 192).")
    private List<Integer> megabytes = List.of(192);

    @Option(names = "--repetitions", paramLabel = "N", description = "Repetitions of each case (default: 5).")
    private int repetitions = 5;

    @Override
    public Integer call() throws IOException, InterruptedException {
        for (int value : List.of(repetitions, tokens.get(0), megabytes.get(0))) {
            if (value < 1) {
                throw new RefusedRequestException(
                        "--repetitions, --tokens and --megabytes must be at least 1: " + value);
            }
        }
        ReplayBenchmark.Plan plan = new ReplayBenchmark.Plan(tokens, megabytes, repetitions);
        return run(
                (scratch, progress) -> new ReplayBenchmark(plan, scratch, progress).run(TypedCommand.of(spec)),
                ReplayRateReport::of,
                ReplayBenchmark.Report::goals);
    }
}
