package dev.millrace.workloads.page;

import dev.millrace.workloads.point.PointResult;
import dev.millrace.workloads.report.JsonFile;
import dev.millrace.workloads.sweep.Curve;
import dev.millrace.workloads.sweep.LoadReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** Writes {@code report.json}, {@code report.html}, {@code points.csv}, {@code lags.csv} and {@code report.png}. */
public final class ReportFiles {
    /** Where the numbers lie, for a program. */
    public static final String JSON = "report.json";

    private ReportFiles() {}

    /**
     * Writes everything but the picture.
     *
     * @param directory made if it is not there
     */
    public static void write(LoadReport report, Path directory) throws IOException {
        JsonFile.write(directory.resolve(JSON), report);
        Files.writeString(directory.resolve("report.html"), Page.of("report.html", report));
        Files.writeString(directory.resolve("points.csv"), points(report));
        Files.writeString(directory.resolve("lags.csv"), lags(report));
    }

    private static String points(LoadReport report) {
        StringBuilder csv = new StringBuilder(
                "curve,point,offered,achieved,tokens_per_second,megabytes_per_second,of_baseline,"
                        + "publish_delay_p99_ms,publish_latency_p99_ms,end_to_end_p50_ms,end_to_end_p99_ms,added_p50_ms,added_p99_ms,ess,trained_share,"
                        + "staleness_mean,processor_load,own_micros,drain_seconds,recovery_seconds,gap_seconds,limit\n");
        for (Curve curve : report.curves()) {
            for (PointResult p : curve.points()) {
                csv.append(String.format(
                        Locale.ROOT,
                        "\"%s\",\"%s\",%.3f,%.3f,%.1f,%.4f,%.4f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.5f,%.5f,%.4f,%.4f,%.3f,%.2f,%.2f,%.2f,%s%n",
                        quoted(curve.label()),
                        quoted(p.label()),
                        p.offered(),
                        p.achieved(),
                        p.tokensPerSecond(),
                        p.megabytesPerSecond(),
                        p.ofBaseline(),
                        p.publishDelay().p99(),
                        p.publishLatency().p99(),
                        p.endToEnd().p50(),
                        p.endToEnd().p99(),
                        p.added().p50(),
                        p.added().p99(),
                        p.ess(),
                        p.trainedShare(),
                        p.stalenessMean(),
                        p.processorLoad(),
                        p.ownMicros(),
                        p.drainSeconds(),
                        p.recoverySeconds(),
                        p.gapSeconds(),
                        p.limit().name().toLowerCase(Locale.ROOT)));
            }
        }
        return csv.toString();
    }

    private static String lags(LoadReport report) {
        StringBuilder csv = new StringBuilder(
                "curve,point,at_seconds,partition,records,seconds,versions_in_flight,versions_in_queue,batches_ahead,rollouts_per_second\n");
        for (Curve curve : report.curves()) {
            for (PointResult p : curve.points()) {
                p.lags()
                        .forEach(lag -> lag.records()
                                .forEach((partition, records) -> csv.append(String.format(
                                        Locale.ROOT,
                                        "\"%s\",\"%s\",%.2f,%s,%d,%.2f,%.3f,%.3f,%d,%.1f%n",
                                        quoted(curve.label()),
                                        quoted(p.label()),
                                        lag.atSeconds(),
                                        partition,
                                        records,
                                        lag.seconds().get(partition),
                                        lag.versionsInFlight(),
                                        lag.versionsInQueue(),
                                        lag.batchesAhead(),
                                        lag.rolloutsPerSecond()))));
            }
        }
        return csv.toString();
    }

    private static String quoted(String text) {
        return text.replace("\"", "\"\"");
    }
}
