package dev.millrace.cli.measure;

import com.fasterxml.jackson.core.JsonProcessingException;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.topology.CapacityPlan;
import dev.millrace.workloads.topology.GrowthBenchmark;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace plan}: sizes a cluster for a load. */
@Command(
        name = "plan",
        description =
                "Computes topology instances, partitions, brokers, network and disk for a load, from the figures of "
                        + "load-test growth. Each line names what was measured and what is extrapolated.",
        footer = {"", "millrace plan --generators 1000 --tokens-per-second 1e6 --policies 1"})
public final class PlanCommand extends ScreenCommand {
    @Option(names = "--generators", paramLabel = "N", required = true, description = "Generators of all policies.")
    private int generators;

    @Option(
            names = "--tokens-per-second",
            paramLabel = "N",
            required = true,
            description = "Response tokens a second of all generators.")
    private double tokensPerSecond;

    @Option(names = "--policies", paramLabel = "N", required = true, description = "Policies, each a run of its own.")
    private int policies;

    @Option(names = "--response-tokens", paramLabel = "N", description = "Mean tokens of a response (default: 512).")
    private int responseTokens = 512;

    @Option(names = "--batch-sequences", paramLabel = "N", description = "Sequences of a batch (default: 256).")
    private int batchSequences = 256;

    @Option(
            names = "--from",
            paramLabel = "FILE",
            description = "growth.json of your machine (default: the figures that Millrace was built with).")
    private @Nullable Path from;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        CapacityPlan plan;
        try {
            plan = CapacityPlan.of(
                    new CapacityPlan.Load(generators, tokensPerSecond, policies, responseTokens, batchSequences),
                    figures());
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        if (json) {
            out().println(JsonFile.text(plan));
        } else {
            ReportText.lines(plan.report()).forEach(out()::println);
        }
        return 0;
    }

    private GrowthBenchmark.Report figures() throws IOException {
        try {
            return from == null
                    ? JsonFile.read(GrowthBenchmark.class, "growth.json", GrowthBenchmark.Report.class)
                    : JsonFile.read(from, GrowthBenchmark.Report.class);
        } catch (NoSuchFileException | JsonProcessingException e) {
            String found = e instanceof JsonProcessingException read
                    ? from + " is not a growth.json: " + read.getOriginalMessage()
                    : "there is no " + e.getMessage();
            throw new RefusedRequestException(
                    "cannot plan without growth figures: " + found
                            + "; measure them: ./millrace load-test growth --report DIR",
                    e);
        }
    }
}
