package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.Scratch;
import dev.millrace.workloads.topology.TopologyBenchmark;
import dev.millrace.workloads.topology.TopologyBenchmark.TopologyReport;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace load-test topology}: the topology against a raw copy of the same bytes, and against its goals. */
@Command(
        name = "topology",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Compares the topology with a raw transactional copy of the same bytes, on its own broker: "
                + "throughput, bytes written, added latency, restarts, memory.",
        footer = {
            "",
            "Takes a few minutes with --quick, half an hour without. Exit codes: 0 every goal holds; 1 one is missed."
        })
public final class TopologyCommand implements Callable<Integer> {
    /** Exit status if a goal is missed. */
    private static final int MISSED = 1;

    @Option(names = "--report", paramLabel = "DIR", required = true, description = "Where topology.json goes.")
    private Path report;

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

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (repetitions != null && repetitions < 1) {
            throw new RefusedRequestException("--repetitions must be at least 1: " + repetitions);
        }
        TopologyBenchmark.Plan plan = quick ? TopologyBenchmark.Plan.quick() : TopologyBenchmark.Plan.whole();
        if (repetitions != null) {
            plan = plan.withRepetitions(repetitions);
        }
        if (!only.isEmpty()) {
            plan = plan.only(EnumSet.copyOf(only));
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println("a broker of its own starts and is warmed up; then each measurement is a line");
        out.flush();
        TopologyBenchmark.Report measured;
        try (Scratch scratch = Scratch.make()) {
            measured = new TopologyBenchmark(plan, scratch.directory(), line -> {
                        out.println(line);
                        out.flush();
                    })
                    .run(TypedCommand.of(spec));
        }
        JsonFile.write(report.resolve("topology.json"), measured);
        ReportText.lines(TopologyReport.of(measured)).forEach(out::println);
        out.flush();
        return measured.allHold() ? 0 : MISSED;
    }
}
