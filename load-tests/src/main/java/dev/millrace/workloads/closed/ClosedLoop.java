package dev.millrace.workloads.closed;

import dev.millrace.workloads.closed.ClosedReport.ClosedCurve;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Runs the points of a closed loop in turn, after an uncounted one; each curve starts with its plain loop and its
 * synchronous run.
 */
public final class ClosedLoop<P extends ClosedLoop.Point<P>> {
    /** The key that varies within a curve. */
    public static final String ETA = "admission.eta";

    private final Execution<P> execution;
    private final Consumer<String> progress;
    private int runs;

    public interface Point<P> {
        Map<String, String> settings();

        int eta();

        P synchronous();

        P shortened();
    }

    public interface Execution<P> {
        /** Sampling and training in turns without a log; empty if they cannot do what the run does. */
        Optional<ClosedRun> plainLoop(P point) throws Exception;

        /** @param number from 0 */
        ClosedRun run(P point, int number) throws Exception;
    }

    public ClosedLoop(Execution<P> execution, Consumer<String> progress) {
        this.execution = execution;
        this.progress = progress;
    }

    /** Runs differing only in {@value #ETA} form a curve, its synchronous run first. */
    public List<ClosedCurve> run(List<P> points) throws Exception {
        Map<Map<String, String>, List<P>> byCurve = new LinkedHashMap<>();
        for (P point : points) {
            Map<String, String> shared = new LinkedHashMap<>(point.settings());
            shared.remove(ETA);
            byCurve.computeIfAbsent(shared, settings -> new ArrayList<>()).add(point);
        }
        progress.accept("warming up");
        execution.run(points.get(0).shortened(), runs++);
        List<ClosedCurve> curves = new ArrayList<>();
        for (Map.Entry<Map<String, String>, List<P>> curve : byCurve.entrySet()) {
            curves.add(curve(curve.getKey(), curve.getValue()));
        }
        return curves;
    }

    private ClosedCurve curve(Map<String, String> shared, List<P> points) throws Exception {
        P first = points.stream()
                .filter(point -> point.eta() == 0)
                .findFirst()
                .orElseGet(() -> points.get(0).synchronous());
        Optional<ClosedRun> plain = execution.plainLoop(first);
        progress.accept(
                plain.map(run -> String.format(
                                Locale.ROOT,
                                "plain loop: %d steps in %.1f s, %.0f ms a step; reward %.3f to %.3f",
                                run.steps().size(),
                                run.seconds(),
                                run.millisPerStep(),
                                run.firstReward(),
                                run.lastReward()))
                        .orElse(
                                "no plain loop: it has no remote engine, joined rewards or scores, reference version or routing replay"));
        ClosedRun baseline = execution.run(first, runs++);
        report(baseline);
        List<ClosedRun> made = new ArrayList<>(List.of(baseline));
        for (P point : points) {
            if (point.eta() != 0) {
                ClosedRun run = execution.run(point, runs++).beside(baseline);
                made.add(run);
                report(run);
            }
        }
        return new ClosedCurve(shared, plain.map(run -> run.beside(baseline)).orElse(null), made);
    }

    private void report(ClosedRun run) {
        progress.accept(String.format(
                Locale.ROOT,
                "%s: %d steps in %.1f s, %.0f ms a step, %.0f tokens/s, %.2f of the synchronous run; reward %.3f to %.3f; "
                        + "%.1f versions behind; idle %s",
                run.label(),
                run.steps().size(),
                run.seconds(),
                run.millisPerStep(),
                run.tokensPerSecond(),
                run.speed().speedUp(),
                run.firstReward(),
                run.lastReward(),
                run.staleness(),
                idle(run)));
    }

    public static String idle(ClosedRun run) {
        return String.join(
                ", ",
                run.use().idle().entrySet().stream()
                        .map(e -> e.getKey() + String.format(Locale.ROOT, " %.0f %%", 100 * e.getValue()))
                        .toList());
    }
}
