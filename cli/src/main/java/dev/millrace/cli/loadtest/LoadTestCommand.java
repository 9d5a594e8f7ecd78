package dev.millrace.cli.loadtest;

import dev.millrace.cli.Refusal;
import dev.millrace.cli.config.ConfigException;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.loadtests.page.Comparison;
import dev.millrace.loadtests.page.ReportFiles;
import dev.millrace.loadtests.page.ReportPicture;
import dev.millrace.loadtests.page.ReportTable;
import dev.millrace.loadtests.report.JsonFile;
import dev.millrace.loadtests.report.Origin;
import dev.millrace.loadtests.sweep.Curve;
import dev.millrace.loadtests.sweep.LoadReport;
import dev.millrace.loadtests.sweep.LoadTest;
import dev.millrace.loadtests.sweep.SweepPoint;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code millrace load-test}: a workload file in, curves of lag against throughput out. */
@Command(name = "load-test", mixinStandardHelpOptions = true, sortOptions = false,
    description = "Publishes synthetic rollouts and scores on a schedule fixed in advance, has the topology make batches of them, and "
        + "reports throughput, latency and the three lags, beside what the stock client does with the same bytes.",
    subcommands = TopologyCommand.class,
    footer = {"", "Without --bootstrap-servers a broker is started as a child process. Workloads: load-tests/workloads/."})
public final class LoadTestCommand implements Callable<Integer> {
    @Option(names = "--workload", paramLabel = "FILE", description = "What to publish and what to sweep, as YAML.")
    private Path workload;

    @Option(names = "--report", paramLabel = "DIR", description = "Where report.html, report.json, report.png and the CSV files go.")
    private Path report;

    @Option(names = "--bootstrap-servers", paramLabel = "HOST:PORT", description = "A cluster to load; topics are made and deleted on it.")
    private String bootstrapServers = "";

    @Option(names = "--compare", arity = "2", paramLabel = "DIR", description = "Two reports, the older one first, side by side.")
    private List<Path> compare;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        if (compare != null) {
            Comparison.print(read(compare.get(0)), read(compare.get(1)), out);
            return 0;
        }
        if (workload == null || report == null) {
            throw new ParameterException(spec.commandLine(), "--workload FILE and --report DIR are needed, or --compare OLD NEW");
        }
        WorkloadFile file = WorkloadFile.read(workload);
        List<SweepPoint> points = file.points();
        String name = workload.getFileName().toString().replaceFirst("\\.ya?ml$", "");
        Origin origin = Origin.here(Scratch.typed(spec));
        List<Curve> curves;
        try (Scratch scratch = Scratch.make()) {
            if (bootstrapServers.isEmpty()) {
                int heap = points.get(0).workload().brokerHeapMb();
                if (points.stream().anyMatch(point -> point.workload().brokerHeapMb() != heap)) {
                    throw new ConfigException("broker_heap_mb cannot be swept: one broker serves all points");
                }
                try (BrokerProcess broker =
                         BrokerProcess.start(scratch.directory().resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx" + heap + "m"))) {
                    curves = measure(broker.bootstrapServers(), scratch, points, out);
                }
            } else {
                curves = measure(bootstrapServers, scratch, points, out);
            }
        }
        LoadReport measured = new LoadReport(LoadReport.FORMAT, name, origin, file.resolved(), curves);
        ReportFiles.write(measured, report);
        ReportTable.print(measured, out);
        picture(measured, out);
        out.println();
        out.println("the report is " + report.resolve("report.html"));
        return 0;
    }

    private static List<Curve> measure(String brokers, Scratch scratch, List<SweepPoint> points, PrintWriter out) throws InterruptedException {
        String prefix = "load-" + Long.toString(Instant.now().toEpochMilli(), 36);
        return new LoadTest(Map.of("bootstrap.servers", brokers), scratch.directory(), prefix, line -> {
            out.println(line);
            out.flush();
        }).run(points);
    }

    private void picture(LoadReport measured, PrintWriter out) {
        try {
            ReportPicture.write(measured, report.resolve("report.png"));
        } catch (IOException e) {
            out.println("there is no report.png: " + e.getMessage());
        }
    }

    private static LoadReport read(Path directory) {
        Path file = directory.resolve(ReportFiles.JSON);
        try {
            LoadReport read = JsonFile.read(file, LoadReport.class);
            if (read.format() != LoadReport.FORMAT) {
                throw new Refusal(file + " has format " + read.format() + ", this version reads " + LoadReport.FORMAT);
            }
            return read;
        } catch (NoSuchFileException e) {
            throw new Refusal("there is no report in " + directory + ": " + file.getFileName() + " is missing", e);
        } catch (IOException e) {
            throw new Refusal(file + " cannot be read as a report: " + e.getMessage(), e);
        }
    }
}
