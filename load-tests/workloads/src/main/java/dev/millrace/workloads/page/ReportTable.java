package dev.millrace.workloads.page;

import dev.millrace.workloads.point.PointResult;
import dev.millrace.workloads.sweep.Curve;
import dev.millrace.workloads.sweep.LoadReport;
import java.io.PrintWriter;
import java.util.Locale;

/** A report as tables for a terminal; they are Markdown too. */
public final class ReportTable {
    private ReportTable() {}

    public static void print(LoadReport report, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "%s, %d processors, load average %.1f; %s; Kafka %s; commit %s; %s%n%s%n",
                report.origin().machine(),
                report.origin().processors(),
                report.origin().loadAverage(),
                report.origin().jvm(),
                report.origin().kafka(),
                report.origin().commit(),
                report.origin().startedAt(),
                report.origin().command());
        for (Curve curve : report.curves()) {
            out.printf(
                    Locale.ROOT,
                    "%n%s: knee %s%.0f rollouts/s; the copy moves %.1f MB/s; %s %.0f rollouts/s (%.1f MB/s), %.0f %% of "
                            + "their time in making records, %.1f us each%n%n",
                    curve.label(),
                    curve.knee().reached() ? "" : "above ",
                    curve.knee().rate(),
                    curve.baseline().copyMegabytesPerSecond(),
                    publishers(curve.baseline().generators()),
                    curve.baseline().publishRolloutsPerSecond(),
                    curve.baseline().publishMegabytesPerSecond(),
                    100 * curve.baseline().generatorShare(),
                    curve.baseline().ownMicros());
            out.println(
                    "| point | offered/s | achieved/s | MB/s | of the copy | end to end p50, p99 ms | added p99 ms | staleness | ESS | limited by |");
            out.println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
            for (PointResult p : curve.points()) {
                out.printf(
                        Locale.ROOT,
                        "| %s | %.0f | %.0f | %.1f | %.2f | %.0f, %.0f | %.0f | %.2f | %.3f | %s%s |%n",
                        p.label(),
                        p.offered(),
                        p.achieved(),
                        p.megabytesPerSecond(),
                        p.ofBaseline(),
                        p.endToEnd().p50(),
                        p.endToEnd().p99(),
                        p.added().p99(),
                        p.stalenessMean(),
                        p.ess(),
                        p.limit().words(),
                        events(p));
            }
        }
        out.flush();
    }

    /** A generator publishes, several publish. */
    private static String publishers(int generators) {
        return generators == 1 ? "one generator publishes" : generators + " generators publish";
    }

    private static String events(PointResult p) {
        return (p.drainSeconds() >= 0
                        ? String.format(Locale.ROOT, "; backlog drained in %.1f s", p.drainSeconds())
                        : "")
                + (p.backlogLeft() > 0
                        ? String.format(
                                Locale.ROOT,
                                "; %,d rollouts of the backlog were in no batch at the end",
                                p.backlogLeft())
                        : "")
                + (p.gapSeconds() >= 0 ? String.format(Locale.ROOT, "; gap after the kill %.1f s", p.gapSeconds()) : "")
                + (p.recoverySeconds() >= 0
                        ? String.format(Locale.ROOT, ", recovered in %.1f s", p.recoverySeconds())
                        : "");
    }
}
