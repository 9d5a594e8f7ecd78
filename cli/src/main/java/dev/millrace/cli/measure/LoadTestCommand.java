package dev.millrace.cli.measure;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.TypedCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.config.ClientFile;
import dev.millrace.infra.broker.BrokerCluster;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.Durability;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.workloads.ClosedExecution;
import dev.millrace.workloads.ClosedFile;
import dev.millrace.workloads.ClosedLoopReport;
import dev.millrace.workloads.ClosedPoint;
import dev.millrace.workloads.Comparison;
import dev.millrace.workloads.Comparison.ClosedComparison;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.LoadTest;
import dev.millrace.workloads.OpenLoopReport;
import dev.millrace.workloads.Scratch;
import dev.millrace.workloads.Workload;
import dev.millrace.workloads.WorkloadFile;
import dev.millrace.workloads.WorkloadFile.SweepPoint;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.topology.RecordedShape;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.BiConsumer;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace load-test}: a workload file in, curves of lag against throughput out, or of reward over time. */
@Command(
        name = "load-test",
        description = "Publishes synthetic rollouts and scores on a fixed schedule through the topology and reports "
                + "throughput, latency and the three lags, with the stock client as baseline. A workload with a "
                + "section 'closed' runs the real roles, synchronously and asynchronously, and reports reward "
                + "over time.",
        subcommands = {
            TopologyCommand.class,
            ReplayRateCommand.class,
            GrowthCommand.class,
            GatewayLoadCommand.class,
            FiguresCommand.class,
            RepeatCommand.class
        },
        footer = {
            "",
            "Without --bootstrap-servers a broker is started as a child process. Workloads: load-tests/workloads/."
        })
public final class LoadTestCommand extends ScreenCommand {
    private static final int MOST_BROKERS = 9;

    @Option(names = "--workload", paramLabel = "FILE", description = "Workload as YAML.")
    private Path workload;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            description = "Folder for report.html, report.json, report.png and CSV files.")
    private Path report;

    @Option(
            names = "--bootstrap-servers",
            paramLabel = "HOST:PORT",
            description = "Cluster to load; topics are created and deleted on it.")
    private String bootstrapServers = "";

    @Mixin
    private ClientFile clientFile = new ClientFile();

    @Option(
            names = "--brokers",
            paramLabel = "N",
            description = "Broker processes to start, in place of the workload's; three replicate everything.")
    private Integer brokers;

    @Option(
            names = "--compare",
            arity = "2",
            paramLabel = "DIR",
            description = "Compare two reports, the older one first.")
    private List<Path> compare;

    @Option(names = "--redraw", paramLabel = "DIR", description = "Redraw a report from its report.json.")
    private Path redraw;

    @Override
    public Integer call() throws Exception {
        if (compare != null) {
            compare();
            return 0;
        }
        if (redraw != null) {
            redraw();
            return 0;
        }
        if (workload == null || report == null) {
            throw mistake("--workload FILE and --report DIR are needed, or --compare OLD NEW, or --redraw DIR");
        }
        MillraceConfig there = there();
        if (brokers != null
                && (brokers < 1 || brokers > MOST_BROKERS || !there.run().embedded())) {
            throw mistake("--brokers must be 1 to " + MOST_BROKERS
                    + ", and is for brokers that are started here, not for --bootstrap-servers: " + brokers);
        }
        ObjectNode tree = ConfigTree.read(workload);
        String name = workload.getFileName().toString().replaceFirst("\\.ya?ml$", "");
        ReportOrigin origin = ReportOrigin.here(TypedCommand.of(spec), AppInfoParser.getVersion());
        if (ClosedFile.isOne(tree)) {
            closed(ClosedFile.of(tree), name, origin);
        } else {
            open(WorkloadFile.of(tree), name, origin);
        }
        out().println();
        out().println("the report is " + report.resolve("report.html"));
        return 0;
    }

    private void open(WorkloadFile file, String name, ReportOrigin origin) throws IOException, InterruptedException {
        List<SweepPoint> points = file.points(LoadTestCommand::recordedShape);
        Workload first = points.get(0).workload();
        LoadReport measured;
        try (Scratch scratch = Scratch.make();
                Cluster cluster = cluster(
                        scratch,
                        BrokerConfig.defaults(),
                        brokers == null ? first.brokers() : brokers,
                        first.brokerHeapMb())) {
            measured = new LoadReport(
                    LoadReport.FORMAT,
                    name,
                    origin,
                    file.resolved(points.get(0)),
                    new LoadTest(cluster.client(), scratch.directory(), prefix(), out()::println).run(points));
        }
        OpenLoopReport.write(measured, report, out()::println);
        ReportText.lines(OpenLoopReport.of(measured)).forEach(out()::println);
    }

    private void closed(ClosedFile file, String name, ReportOrigin origin) throws Exception {
        List<ClosedPoint> points = file.points();
        BrokerConfig broker = points.get(0).config().broker();
        int count = brokers == null ? 1 : brokers;
        if (broker.durability() != Durability.SYSTEM && !there().run().embedded()
                || broker.durability() == Durability.VERSIONS && count > 1) {
            throw new RefusedRequestException("cannot keep broker.durability "
                    + broker.durability().name().toLowerCase(Locale.ROOT) + " of the workload on "
                    + (count > 1 ? count + " brokers" : "a cluster given with --bootstrap-servers")
                    + ", expected one broker started for it; leave out --bootstrap-servers and --brokers, or set"
                    + " broker.durability to system");
        }
        ClosedReport measured;
        try (Scratch scratch = Scratch.make();
                Cluster cluster =
                        cluster(scratch, broker, count, points.get(0).plan().brokerHeapMb())) {
            measured = new ClosedReport(
                    ClosedReport.FORMAT,
                    ClosedReport.KIND,
                    name,
                    origin,
                    file.resolved(),
                    broker.durability(),
                    new ClosedLoop<>(
                                    new ClosedExecution(
                                            cluster.client(), scratch.directory(), prefix(), cluster.sync()),
                                    out()::println)
                            .run(points));
        }
        ClosedLoopReport.write(measured, report, out()::println);
        ReportText.lines(ClosedLoopReport.of(measured)).forEach(out()::println);
    }

    /**
     * Brokers to load: our own, which end with it, or somebody else's.
     *
     * @param sync of our only one
     */
    private record Cluster(Map<String, Object> client, AutoCloseable own, BiConsumer<Collection<String>, String> sync)
            implements AutoCloseable {
        @Override
        public void close() {
            try {
                own.close();
            } catch (Exception e) {
                throw new IllegalStateException("the brokers could not be stopped: " + e.getMessage(), e);
            }
        }
    }

    private Cluster cluster(Scratch scratch, BrokerConfig broker, int count, int heapMegabytes) {
        MillraceConfig there = there();
        if (!there.run().embedded()) {
            return new Cluster(RunOptions.client(there), () -> {}, (topics, learner) -> {});
        }
        if (clientFile.file() != null) {
            throw mistake("--command-config has client settings without an address; add --bootstrap-servers HOST:PORT");
        }
        BrokerCluster started = BrokerCluster.start(
                scratch.directory().resolve("brokers"), broker, count, List.of("-Xmx" + heapMegabytes + "m"));
        return new Cluster(
                Map.of("bootstrap.servers", started.bootstrapServers()),
                started,
                started.brokers().get(0)::sync);
    }

    /** Somebody else's brokers, if any are named. */
    private MillraceConfig there() {
        ConfigLayers layers = new ConfigLayers();
        clientFile.over(layers);
        if (!bootstrapServers.isEmpty()) {
            layers.set("run.bootstrap_servers", bootstrapServers);
        }
        return layers.whereabouts();
    }

    private static String prefix() {
        return "load-" + UUID.randomUUID().toString().substring(0, 8);
    }

    private void compare() {
        boolean closed = kind(compare.get(0)).equals(ClosedReport.KIND);
        if (closed != kind(compare.get(1)).equals(ClosedReport.KIND)) {
            throw new RefusedRequestException("one of " + compare.get(0) + " and " + compare.get(1)
                    + " is a closed loop and the other is not; they cannot be compared");
        }
        ReportText.lines(
                        closed
                                ? ClosedComparison.report(closed(compare.get(0)), closed(compare.get(1)))
                                : Comparison.report(open(compare.get(0)), open(compare.get(1))))
                .forEach(out()::println);
    }

    private void redraw() throws IOException {
        if (kind(redraw).equals(ClosedReport.KIND)) {
            ClosedLoopReport.write(closed(redraw), redraw, out()::println);
        } else {
            OpenLoopReport.write(open(redraw), redraw, out()::println);
        }
        out().println("the report is " + redraw.resolve("report.html"));
    }

    private static ClosedReport closed(Path directory) {
        return read(directory, ClosedReport.class, ClosedReport::format, ClosedReport.FORMAT);
    }

    private static LoadReport open(Path directory) {
        return read(directory, LoadReport.class, LoadReport::format, LoadReport.FORMAT);
    }

    private static String kind(Path directory) {
        return read(directory, JsonNode.class, json -> 0, 0).path("kind").asText();
    }

    private static <T> T read(Path directory, Class<T> type, ToIntFunction<T> format, int known) {
        Path file = directory.resolve(OpenLoopReport.JSON);
        try {
            T read = JsonFile.read(file, type);
            if (format.applyAsInt(read) != known) {
                throw new RefusedRequestException(
                        file + " has format " + format.applyAsInt(read) + ", this version reads " + known);
            }
            return read;
        } catch (NoSuchFileException e) {
            throw new RefusedRequestException(
                    "there is no report in " + directory + ": " + file.getFileName() + " is missing", e);
        } catch (IOException e) {
            throw new RefusedRequestException(file + " cannot be read as a report: " + e.getMessage(), e);
        }
    }

    /** @throws dev.millrace.runtime.config.ConfigException if the folder holds neither */
    private static RecordedShape recordedShape(String folder) {
        if (ArchivedRun.isIn(Path.of(folder))) {
            try (ArchivedRun archive = new ArchivedRun(Path.of(folder))) {
                archive.verify();
                return RecordedShape.of(archive);
            }
        }
        RunOptions options = CommandLine.populateCommand(new RunOptions(), "--run-dir", folder);
        try (AuditedRun audited = options.open();
                LiveRun run = new LiveRun(audited.connection(), Optional.empty())) {
            return RecordedShape.of(run);
        }
    }
}
