package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.workloads.ClosedFile;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.Figure;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.OpenLoopReport;
import dev.millrace.workloads.PointResult;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.GatewayBenchmark;
import dev.millrace.workloads.topology.GrowthBenchmark;
import dev.millrace.workloads.topology.ReplayBenchmark;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

/**
 * A tiny instance of every {@code load-test} and {@code experiment} subcommand and of every workload file: it ends, and its report has
 * its numbers. A new command without a case here fails.
 */
@Tag("smoke")
class LoadTestSmokeIT {
    private static final Path WORKLOADS = Path.of("..", "load-tests", "workloads");
    private static final int AT_ONCE = 4;
    /** The one workload file that searches here, too. */
    private static final String KNEE = "knee.yaml";
    /** The load test whose topology has to keep up with a rate; it waits until the others are over. */
    private static final String ALONE = "topology";

    private static final Duration LIMIT = Duration.ofMinutes(60);
    private static final Path ARCHIVE = Path.of("src", "test", "resources", "archives", "contract-3");

    @TempDir
    static Path brokerDirectory;

    @TempDir
    static Path reports;

    private static final Map<String, Future<?>> MEASURED = new HashMap<>();

    private static EmbeddedBroker broker;
    private static ExecutorService atOnce;

    @TempDir
    Path directory;

    /** A tiny measurement mostly waits, so several run at once. */
    @BeforeAll
    static void startAll() throws IOException {
        broker = EmbeddedBroker.start(brokerDirectory);
        atOnce = Executors.newFixedThreadPool(AT_ONCE);
        for (String name : loadTests().filter(name -> !name.equals(ALONE)).toList()) {
            start(name, () -> loadTest(name));
        }
    }

    private interface Measurement {
        void run() throws IOException;
    }

    private static void start(String name, Measurement measurement) {
        MEASURED.put(name, atOnce.submit(() -> {
            measurement.run();
            return null;
        }));
    }

    @AfterAll
    static void stopBroker() {
        atOnce.shutdownNow();
        broker.close();
    }

    /** What {@code figures} measures, each once, then the other subcommands; what runs alone is last. */
    static Stream<String> loadTests() throws IOException {
        Map<List<String>, String> figures = new LinkedHashMap<>();
        for (Figure figure : Figure.all(WORKLOADS)) {
            figures.putIfAbsent(figure.arguments(), figure.name());
        }
        return Stream.concat(figures.values().stream(), subcommands("load-test"))
                .distinct()
                .sorted(Comparator.comparing(ALONE::equals));
    }

    static Stream<String> experiments() {
        return subcommands("experiment");
    }

    private static Stream<String> subcommands(String command) {
        return Main.commandLine().getSubcommands().get(command).getSubcommands().values().stream()
                .map(CommandLine::getCommandName)
                .distinct()
                .sorted();
    }

    private static void measureTiny(Path file) throws IOException {
        Path directory = Files.createDirectory(
                reports.resolve(file.getFileName().toString().replace(".yaml", "")));
        ObjectNode tree = ConfigTree.read(file);
        if (ClosedFile.isOne(tree)) {
            shrinkClosed(tree);
            ClosedReport measured = JsonFile.read(measure(tree, directory), ClosedReport.class);
            requireNumbers(measured);
            assertThat(measured.durability().name())
                    .isEqualToIgnoringCase(tree.at("/broker/durability").asText("system"));
            return;
        }
        shrinkOpen(tree, file.endsWith(KNEE));
        LoadReport measured = JsonFile.read(measure(tree, directory), LoadReport.class);
        while (!isMeasured(measured)
                && tree.get("seconds").intValue() < 100) { // few seconds are none on a busy machine
            tree.put("seconds", 3 * tree.get("seconds").intValue());
            measured = JsonFile.read(measure(tree, directory), LoadReport.class);
        }
        requireNumbers(measured, tree);
    }

    /** @return the JSON of the report that the workload has left */
    private static Path measure(ObjectNode workload, Path directory) throws IOException {
        Path tiny = Files.writeString(directory.resolve("tiny.yaml"), ConfigTree.write(workload));
        Path report = Files.createTempDirectory(directory, "measured").resolve("report");
        List<String> arguments =
                new ArrayList<>(List.of("load-test", "--workload", tiny.toString(), "--report", report.toString()));
        if (workload.path("brokers").asInt(1) == 1 && !workload.has("broker")) {
            arguments.addAll(List.of("--bootstrap-servers", broker.bootstrapServers()));
        }

        run(List.of(0), arguments.toArray(String[]::new));

        assertThat(report.resolve("report.html")).isNotEmptyFile();
        assertThat(run(List.of(0), "load-test", "--compare", report.toString(), report.toString()))
                .contains("within noise");
        return report.resolve(OpenLoopReport.JSON);
    }

    private static boolean isMeasured(LoadReport measured) {
        return measured.curves().stream()
                .allMatch(curve -> curve.points().stream()
                        .anyMatch(point ->
                                point.rates().achieved() > 0 && point.batches().ess() > 0));
    }

    private static void requireNumbers(ClosedReport measured) {
        assertThat(measured.curves()).isNotEmpty().allSatisfy(curve -> {
            assertThat(curve.runs()).hasSizeGreaterThan(1);
            assertThat(Stream.concat(Stream.of(curve.plain()), curve.runs().stream()))
                    .allSatisfy(run -> {
                        assertThat(run.tokens()).isPositive();
                        assertThat(run.millisPerStep()).isPositive();
                        assertThat(run.steps()).isNotEmpty();
                    });
            assertThat(curve.runs()).filteredOn(ClosedRun::synchronous).allSatisfy(onPolicy -> {
                assertThat(onPolicy.staleness()).isZero();
                assertThat(onPolicy.essRatio()).isGreaterThan(0.999);
            });
        });
    }

    private static void requireNumbers(LoadReport measured, ObjectNode workload) {
        assertThat(measured.curves()).isNotEmpty().allSatisfy(curve -> {
            assertThat(curve.baseline().copyMegabytesPerSecond()).isPositive();
            assertThat(curve.baseline().publishRolloutsPerSecond()).isPositive();
            assertThat(curve.knee().rate()).isPositive();
            assertThat(curve.points())
                    .hasSizeGreaterThanOrEqualTo(workload.at("/knee/search").asBoolean() ? 3 : 1)
                    .allSatisfy(point -> requireSense(point, workload))
                    .anySatisfy(point -> requireNumbers(point, workload));
        });
    }

    /** On a busy machine no batch may be complete within the two seconds of a point. */
    private static void requireSense(PointResult point, ObjectNode workload) {
        assertThat(point.rates().achieved()).isNotNegative().isFinite();
        if (!workload.has("algorithm")) {
            assertThat(point.batches().staleShare())
                    .as("the wide limit never binds")
                    .isZero();
        }
    }

    private static void requireNumbers(PointResult point, ObjectNode workload) {
        assertThat(point.rates().achieved()).isPositive();
        assertThat(point.rates().tokensPerSecond()).isPositive();
        assertThat(point.batches().ess()).isPositive();
        assertThat(point.batches().trainedShare()).isPositive();
        assertThat(point.lags()).isNotEmpty();
        if (!workload.has("backlog")) { // which is worked off before what is timed
            assertThat(point.latencies().endToEnd().count()).isPositive();
        }
        if (workload.has("fault")) {
            assertThat(point.recovery().gapSeconds()).isPositive();
        }
    }

    /**
     * Of every list of the last sweep the last value, seconds where there were tens of them, small batches at a low rate, which is the only
     * one unless the knee is searched for.
     */
    private static void shrinkOpen(ObjectNode tree, boolean searchesKnee) {
        shortenSweep(tree);
        waitOnABusyMachine(tree);
        boolean kills = tree.has("fault");
        tree.put("warm_up_seconds", 0);
        tree.put("seconds", kills ? 6 : 1);
        if (kills) {
            tree.withObjectProperty("fault").put("kill_after_seconds", 1);
        }
        tree.withObjectProperty("load").put("rollouts_per_second", 40);
        tree.withObjectProperty("topology").withObjectProperty("batch").put("sequences", 8);
        if (tree.has("knee")) {
            tree.withObjectProperty("knee").put("search", searchesKnee).put("points", 3);
        }
        if (tree.has("backlog")) {
            tree.withObjectProperty("backlog").put("rollouts", 160);
        }
    }

    /** Runs that begin at once on one broker wait for each other where they register schemas. */
    private static void waitOnABusyMachine(ObjectNode tree) {
        tree.withObjectProperty("topics").put("timeout_ms", 300_000);
    }

    private static void shrinkClosed(ObjectNode tree) {
        shortenSweep(tree);
        waitOnABusyMachine(tree);
        ObjectNode closed = tree.withObjectProperty("closed");
        closed.put("seconds", 0);
        closed.put("limit_seconds", 1_800); // on a busy machine
        closed.put("tokens", 200);
        closed.put("over_steps", 2);
        closed.put("batch_sequences", 16);
        tree.withObjectProperty("admission").put("group_size", 4);
        tree.withObjectProperty("generator").put("slots", 16);
        ObjectNode model = tree.withObjectProperty("model");
        model.put("hidden_size", 16);
        model.put("layers", 1);
        model.put("heads", 2);
        model.put("kv_heads", 1);
        model.put("head_size", 8);
        model.put("intermediate_size", 32);
    }

    private static void shortenSweep(ObjectNode tree) {
        JsonNode sweep = tree.path("sweep");
        if (sweep instanceof ArrayNode sweeps) {
            sweep = sweeps.get(sweeps.size() - 1);
            tree.set("sweep", sweep);
        }
        for (JsonNode values : sweep) {
            ArrayNode list = (ArrayNode) values;
            JsonNode last = list.get(list.size() - 1);
            list.removeAll();
            list.add(last);
        }
    }

    @ParameterizedTest
    @MethodSource("loadTests")
    void shouldRunEveryLoadTest(String command) throws IOException {
        if (command.equals(ALONE)) {
            loadTest(command);
        } else {
            assertThat(MEASURED.get(command)).succeedsWithin(LIMIT);
        }
    }

    private static void loadTest(String command) throws IOException {
        Path workload = WORKLOADS.resolve(command + ".yaml");
        if (Files.exists(workload)) {
            measureTiny(workload);
            return;
        }
        String report = reports.resolve(command).toString();
        switch (command) {
            case "topology" -> {
                measure("topology", "--quick", "--repetitions", "1", "--report", report);
                JsonNode measured = JsonFile.read(Path.of(report, "topology.json"), JsonNode.class);
                assertThat(measured.path("throughput")).isNotEmpty().allSatisfy(of -> {
                    requirePositive(of, "/copy_megabytes/median", "/megabytes/median", "/ratio/median");
                    requirePositive(of, "/bytes_written/median");
                });
                assertThat(measured.path("latency")).isNotEmpty().allSatisfy(of -> requirePositive(of, "/p50", "/p99"));
                assertThat(measured.path("restarts")).hasSize(2).allSatisfy(of -> {
                    requirePositive(of, "/gap_seconds", "/rollouts");
                    assertThat(of.path("lost").asLong(-1)).isZero();
                    assertThat(of.path("repeated").asLong(-1)).isZero();
                });
                assertThat(measured.path("memory"))
                        .hasSize(2)
                        .allSatisfy(of -> requirePositive(of, "/rollouts", "/live_heap_bytes"));
            }
            case "replay" -> {
                measure("replay", "--tokens", "512", "--megabytes", "8", "--repetitions", "1", "--report", report);
                assertThat(JsonFile.read(Path.of(report, "replay.json"), ReplayBenchmark.Report.class)
                                .results())
                        .singleElement()
                        .satisfies(of -> requirePositive(
                                of.rates().topology(),
                                of.rates().reading(),
                                of.rates().asRecorded(),
                                of.rates().corrections(),
                                of.rates().threeCorrections()));
            }
            case "growth" -> {
                measure(
                        "growth",
                        "--rollouts",
                        "256",
                        "--partitions",
                        "1,2",
                        "--instances",
                        "1",
                        "--tokens",
                        "128",
                        "--repetitions",
                        "2",
                        "--report",
                        report);
                Path figures = Path.of(report, "growth.json");
                GrowthBenchmark.Report measured = JsonFile.read(figures, GrowthBenchmark.Report.class);
                assertThat(measured.measured())
                        .hasSize(2)
                        .allSatisfy(at -> assertThat(at.costs()).hasSize(2).allSatisfy(cost -> {
                            assertThat(cost.processorMicros()).isPositive().isFinite();
                            assertThat(cost.seconds()).isPositive().isFinite();
                            assertThat(cost.log().rollouts()).isGreaterThan(128);
                            assertThat(cost.log().scores()).isPositive();
                            assertThat(cost.log().trajectories()).isPositive();
                            assertThat(cost.log().batches()).isPositive();
                        }));
                assertThat(measured.growth())
                        .hasSize(2)
                        .allSatisfy(over -> assertThat(over.fit().exponent()).isFinite());
                assertThat(run(
                                List.of(0),
                                "plan",
                                "--generators",
                                "8",
                                "--tokens-per-second",
                                "10",
                                "--policies",
                                "1",
                                "--from",
                                figures.toString()))
                        .contains("topology instances", "response tokens 512, measured 128");
            }
            case "gateway" -> {
                measure(
                        "gateway",
                        "--agents",
                        "4",
                        "--open",
                        "8",
                        "--latency-ms",
                        "50",
                        "--think-ms",
                        "50",
                        "--seconds",
                        "2",
                        "--repetitions",
                        "1",
                        "--report",
                        report);
                assertThat(JsonFile.read(Path.of(report, "gateway.json"), GatewayBenchmark.Report.class)
                                .rounds())
                        .singleElement()
                        .satisfies(of -> {
                            assertThat(of.calls()).isPositive();
                            assertThat(of.directP50()).isGreaterThanOrEqualTo(50);
                            assertThat(of.p50()).isGreaterThanOrEqualTo(50);
                        });
            }
            case "repeat" ->
                assertThat(run(
                                List.of(0),
                                "load-test",
                                "repeat",
                                "--archive",
                                ARCHIVE.toString(),
                                "--times",
                                "2",
                                "--run-dir",
                                report))
                        .contains("744 rollouts in " + report);
            case "figures" -> measureFigures(Path.of(report));
            default -> throw new AssertionError("no tiny instance of load-test " + command + " is known here; add one");
        }
    }

    private static void measureFigures(Path report) throws IOException {
        Path tiny = Files.createDirectory(reports.resolve("tiny"));
        Files.writeString(tiny.resolve("absent.yaml"), "rollouts: {from: nowhere}");
        ObjectNode saturation = ConfigTree.read(WORKLOADS.resolve("saturation.yaml"));
        shrinkOpen(saturation, false);
        Files.writeString(tiny.resolve("saturation.yaml"), ConfigTree.write(saturation));
        String[] command =
                ("load-test figures --only absent,saturation --workloads " + tiny + " --report " + report).split(" ");

        assertThat(run(List.of(1), command))
                .contains("parts: 2,", "absent: failed", "saturation: ", "load average", "failed: absent;");
        try (Stream<Path> files = Files.list(report.resolve("saturation"))) {
            assertThat(files.map(Path::getFileName).map(Path::toString))
                    .as("as in load-tests/results")
                    .containsExactlyInAnyOrder("points.csv", "report.json", "report.png");
        }
        assertThat(report.resolve("saturation").resolve(OpenLoopReport.JSON))
                .content()
                .contains("--report DIR\"")
                .doesNotContain(report.toString());
        String commit = ReportOrigin.here("", null).commit();
        assertThat(run(List.of(1), command))
                .contains("absent: failed")
                .contains(
                        commit.matches("[0-9a-f]+")
                                ? "saturation: already measured"
                                : "saturation: "); // of a tree with changes
    }

    /** Whether a goal is reached on the machine of a test says nothing: 1 is as good as 0. */
    private static void measure(String... arguments) {
        String said = run(
                List.of(0, 1),
                Stream.concat(Stream.of("load-test"), Arrays.stream(arguments)).toArray(String[]::new));
        assertThat(Path.of(arguments[arguments.length - 1]))
                .as("the report, after it said:%n%s", said)
                .isNotEmptyDirectory();
    }

    private static void requirePositive(Sample... samples) {
        assertThat(samples)
                .allSatisfy(sample -> assertThat(sample.median()).isPositive().isFinite());
    }

    private static void requirePositive(JsonNode of, String... pointers) {
        assertThat(pointers)
                .allSatisfy(pointer ->
                        assertThat(of.at(pointer).asDouble()).as(pointer).isPositive());
    }

    @ParameterizedTest
    @MethodSource("experiments")
    void shouldRunEveryExperiment(String experiment) {
        Path report = directory.resolve("report");
        String grid = "--lags 0,1,2,4 --steps 16 --batch-sequences 16";
        List<String> numbers = switch (experiment) {
            case "staleness" -> List.of(grid, "runs.csv");
            case "lag-law" -> List.of(grid, "lag-law.md", "lag-law.json");
            case "lengths" -> List.of("--lengths 4,8 --batches 2 --oracle-batches 2", "lengths.csv", "lengths.json");
            case "methods" -> List.of("--lag 2 --repetitions 2", "methods.csv", "methods.json");
            default ->
                throw new AssertionError("no tiny instance of experiment " + experiment + " is known here; add one");
        };

        String command =
                "experiment " + experiment + " --seeds 1 --warm-up 2 " + numbers.get(0) + " --report " + report;
        run(List.of(0), command.split(" "));

        assertThat(numbers.subList(1, numbers.size()))
                .allSatisfy(file -> assertThat(report.resolve(file)).isNotEmptyFile());
    }

    private static String run(List<Integer> statuses, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        assertThat(command.execute(arguments)).as(out + "\n" + err).isIn(statuses);
        return out + "\n" + err;
    }
}
