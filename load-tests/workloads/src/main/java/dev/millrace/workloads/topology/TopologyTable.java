package dev.millrace.workloads.topology;

import dev.millrace.workloads.report.Goal;
import dev.millrace.workloads.report.Sample;
import dev.millrace.workloads.topology.TopologyBenchmark.Report;
import java.io.PrintWriter;
import java.util.Locale;

/** The topology's figures as tables for a terminal; they are Markdown too. */
public final class TopologyTable {
    private TopologyTable() {}

    public static void print(Report report, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "%s, %d processors, load average %.1f; %s; Kafka %s; commit %s; %s%n%s%n%n",
                report.origin().machine(),
                report.origin().processors(),
                report.origin().loadAverage(),
                report.origin().jvm(),
                report.origin().kafka(),
                report.origin().commit(),
                report.origin().startedAt(),
                report.origin().command());
        out.println(
                "| case | copy MB/s | topology MB/s | rollouts/s | M tokens/s | of the copy | by processor time | written per byte |");
        out.println("| --- | --- | --- | --- | --- | --- | --- | --- |");
        for (Throughput.Result r : report.throughput()) {
            out.printf(
                    Locale.ROOT,
                    "| %s | %s | %s | %.0f | %.2f | %s | %s | %s |%n",
                    r.of().label(),
                    range(r.copyMegabytes(), "%.0f"),
                    range(r.megabytes(), "%.0f"),
                    r.rollouts().median(),
                    r.tokens().median() / 1e6,
                    range(r.ratio(), "%.2f"),
                    range(r.processorRatio(), "%.2f"),
                    range(r.bytesWritten(), "%.2f"));
        }
        out.println();
        out.println("| goal | measured | asked for | |");
        out.println("| --- | --- | --- | --- |");
        for (Goal goal : report.goals()) {
            out.printf(
                    "| %s | %s | %s | %s |%n",
                    goal.name(), goal.measured(), goal.bound(), goal.holds() ? "holds" : "MISSED");
        }
        out.flush();
    }

    private static String range(Sample sample, String pattern) {
        return String.format(
                Locale.ROOT,
                pattern + " (" + pattern + "-" + pattern + ")",
                sample.median(),
                sample.min(),
                sample.max());
    }
}
