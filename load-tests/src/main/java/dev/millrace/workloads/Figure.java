package dev.millrace.workloads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.report.ReportOrigin;
import dev.millrace.runtime.config.ConfigTree;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Stream;

/**
 * A benchmark or workload whose report is published in {@code load-tests/results}.
 *
 * @param report its JSON, below the folder of all reports
 * @param arguments of {@code load-test}, without {@code --report}
 * @param seconds that it takes on two cores, estimated; empty if they cannot be known before
 */
public record Figure(String name, Path report, List<String> arguments, OptionalDouble seconds) {
    private static final String YAML = ".yaml";

    /** All of them, in the order in which they are measured: benchmarks, then workload files. */
    public static List<Figure> all(Path workloads) throws IOException {
        List<Figure> all = new ArrayList<>(List.of(
                benchmark("topology", "topology.json", 200, "--quick"),
                benchmark("replay", "replay.json", 120, "--megabytes", "96", "--repetitions", "3"),
                benchmark("growth", "growth/growth.json", 280),
                benchmark("gateway", "gateway/gateway.json", 120, "--seconds", "10")));
        try (Stream<Path> files = Files.list(workloads)) {
            files.filter(file -> file.toString().endsWith(YAML)).sorted().forEach(file -> all.add(workload(file)));
        }
        return all;
    }

    private static Figure benchmark(String name, String report, double seconds, String... options) {
        List<String> arguments =
                Stream.concat(Stream.of(name), Stream.of(options)).toList();
        return new Figure(name, Path.of(report), arguments, OptionalDouble.of(seconds));
    }

    private static Figure workload(Path file) {
        ObjectNode tree = ConfigTree.read(file);
        String name = file.getFileName().toString().replace(YAML, "");
        return new Figure(
                name,
                Path.of(name, OpenLoopReport.JSON),
                List.of("--workload", file.toString()),
                ClosedFile.isOne(tree)
                        ? ClosedFile.of(tree).seconds()
                        : WorkloadFile.of(tree).seconds());
    }

    /** The workload file; empty for a benchmark. */
    public Optional<Path> workload() {
        return name.equals(arguments.get(0)) ? Optional.empty() : Optional.of(Path.of(arguments.get(1)));
    }

    /** Origin of the report below {@code reports}; empty if there is none that can be read. */
    public Optional<ReportOrigin> measured(Path reports) {
        try {
            JsonNode origin =
                    JsonFile.read(reports.resolve(report), JsonNode.class).path("origin");
            return Optional.of(JsonFile.read(origin.toString(), ReportOrigin.class));
        } catch (IOException e) {
            return Optional.empty();
        }
    }
}
