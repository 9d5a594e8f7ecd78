package dev.millrace.workloads;

import dev.millrace.workloads.Knee.KneeSearch;
import dev.millrace.workloads.WorkloadFile.SweepPoint;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Runs the points of a load test in turn, each curve's baseline first. The first point runs once before, uncounted, so
 * that the JIT has compiled this process and the broker's.
 */
public final class LoadTest {
    public static final String RATE = "load.rollouts_per_second";
    /** Factor on the first rate for the warm-up. */
    private static final int WARM_UP_RATE = 2;

    private final Map<String, Object> client;
    private final Path scratch;
    private final String prefix;
    private final Consumer<String> progress;
    private int runs;

    /** @param prefix of run names, unused on this cluster */
    public LoadTest(Map<String, Object> client, Path scratch, String prefix, Consumer<String> progress) {
        this.client = client;
        this.scratch = scratch;
        this.prefix = prefix;
        this.progress = progress;
    }

    public List<Curve> run(List<SweepPoint> points) throws InterruptedException {
        Map<Map<String, String>, List<SweepPoint>> byCurve = new LinkedHashMap<>();
        for (SweepPoint point : points) {
            byCurve.computeIfAbsent(Sweep.without(RATE, point.settings()), settings -> new ArrayList<>())
                    .add(point);
        }
        List<Curve> curves = new ArrayList<>();
        for (Map.Entry<Map<String, String>, List<SweepPoint>> curve : byCurve.entrySet()) {
            curves.add(curve(curve.getKey(), curve.getValue(), curves.isEmpty()));
        }
        return curves;
    }

    private Curve curve(Map<String, String> shared, List<SweepPoint> points, boolean first)
            throws InterruptedException {
        Workload workload = points.get(0).workload();
        if (first) {
            progress.accept("warming up");
            point(
                    workload.knee().search()
                            ? workload.withRate(WARM_UP_RATE * workload.load().rolloutsPerSecond())
                            : workload,
                    Map.of(),
                    Baseline.measure(client, workload, next()));
        }
        Baseline baseline = Baseline.measure(client, workload, next());
        progress.accept(String.format(
                Locale.ROOT,
                "baseline: %d publishing: %.0f rollouts/s (%.1f MB/s), %.0f %% of the time in making "
                        + "records; a copy moves %.1f MB/s",
                baseline.generators(),
                baseline.publishRolloutsPerSecond(),
                baseline.publishMegabytesPerSecond(),
                100 * baseline.generatorShare(),
                baseline.copyMegabytesPerSecond()));
        List<PointResult> results = new ArrayList<>();
        if (workload.knee().search()) {
            KneeSearch.run(workload.load().rolloutsPerSecond(), workload.knee().points(), rate -> {
                Map<String, String> settings = new LinkedHashMap<>(shared);
                settings.put(RATE, String.format(Locale.ROOT, "%.0f", rate));
                PointResult result = point(workload.withRate(rate), settings, baseline);
                results.add(result);
                report(result);
                return result.rates().achieved();
            });
        } else {
            for (SweepPoint point : points) {
                PointResult result = point(point.workload(), point.settings(), baseline);
                results.add(result);
                report(result);
            }
        }
        Knee knee = Knee.of(results.stream()
                .map(r -> Knee.Point.of(r.rates().offered(), r.rates().achieved()))
                .toList());
        progress.accept(
                knee.reached()
                        ? String.format(Locale.ROOT, "knee: %.0f rollouts/s", knee.rate())
                        : String.format(Locale.ROOT, "knee: not reached, it follows %.0f rollouts/s", knee.rate()));
        return new Curve(shared, baseline, results, knee);
    }

    private PointResult point(Workload workload, Map<String, String> settings, Baseline baseline)
            throws InterruptedException {
        return new PointRun(client, workload, next(), scratch, settings, baseline.copyMegabytesPerSecond()).run();
    }

    private void report(PointResult result) {
        progress.accept(String.format(
                Locale.ROOT,
                "%s: %.0f of %.0f rollouts/s, %.2f of the copy, end to end p50 %.0f ms p99 %.0f ms, limited by %s",
                result.label(),
                result.rates().achieved(),
                result.rates().offered(),
                result.rates().ofBaseline(),
                result.latencies().endToEnd().p50(),
                result.latencies().endToEnd().p99(),
                result.use().limit().words()));
    }

    private String next() {
        return prefix + "-" + runs++;
    }
}
