package dev.millrace.docs.reference;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.experiments.Correction;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.workloads.Baseline;
import dev.millrace.workloads.Curve;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.PointResult;
import dev.millrace.workloads.PointResult.Limit;
import dev.millrace.workloads.SettingsLabel;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedReport.ClosedCurve;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.topology.CapacityPlan;
import dev.millrace.workloads.topology.CapacityPlan.Load;
import dev.millrace.workloads.topology.GrowthBenchmark;
import dev.millrace.workloads.topology.GrowthBenchmark.Cost;
import dev.millrace.workloads.topology.GrowthBenchmark.Growth;
import dev.millrace.workloads.topology.GrowthBenchmark.LogBytes;
import dev.millrace.workloads.topology.GrowthBenchmark.Measured;
import dev.millrace.workloads.topology.ReplayBenchmark;
import dev.millrace.workloads.topology.Throughput.ThroughputCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The tables of figures in the documents, from {@code load-tests/results} and {@code docs/measurements}. */
final class LoadTables {
    private static final Path RESULTS = Path.of("..", "load-tests", "results");
    private static final List<String> OPEN = List.of("knee", "settings", "lengths", "replicated");
    private static final List<String> FIXED = List.of("commit-interval", "slow-learner", "failures", "backlog", "kill");
    private static final List<String> CLOSED = List.of("closed-plain", "closed-eta", "closed-tail", "closed-update");

    /** Reports that the tables were made from, below {@link #RESULTS}. */
    private static final Set<Path> READ = new TreeSet<>();

    private LoadTables() {}

    /** The reports that {@link #all} reads, below {@code load-tests/results}. */
    static Set<Path> reports() throws IOException {
        all();
        return READ;
    }

    private static <T> T read(String report, Class<T> type) throws IOException {
        READ.add(Path.of(report));
        return JsonFile.read(RESULTS.resolve(report), type);
    }

    /** By page, and by the name that the page's marker has. */
    static Map<String, Map<String, String>> all() throws IOException {
        GrowthBenchmark.Report growth = read("growth/growth.json", GrowthBenchmark.Report.class);
        return Map.of(
                "measurements/load.md",
                Map.of(
                        "knees",
                        knees(),
                        "saturation",
                        saturation(),
                        "fixed rates",
                        fixedRates(),
                        "closed loops",
                        closedLoops()),
                "measurements/growth.md",
                Map.of("costs", costs(growth), "exponents", exponents(growth), "origin", origin(growth.origin())),
                "measurements/staleness.md",
                Map.of("rewards", rewards(), "early warning", earlyWarning()),
                "measurements/topology.md",
                topology(),
                "measurements/replay.md",
                replay(),
                "operations.md",
                Map.of("plan", plan(CapacityPlan.of(new Load(1000, 1e6, 1, 512, 256), growth))));
    }

    private static String origin(ReportOrigin of) {
        return Tables.head("machine", "load average at the start", "Java", "Kafka", "commit", "command")
                + Tables.row(
                        of.processors() + " x " + of.machine(),
                        number(of.loadAverage(), 1),
                        of.software().jvm(),
                        String.valueOf(of.software().kafka()),
                        of.commit(),
                        Tables.code(of.command()));
    }

    private static String goals(List<Goal> goals) {
        StringBuilder table = new StringBuilder(Tables.head("goal", "measured", "bound", ""));
        goals.forEach(goal -> table.append(
                Tables.row(goal.name(), goal.measured(), goal.bound(), goal.holds() ? "holds" : "**missed**")));
        return table.toString();
    }

    /** Mean of the seeds by correction and lag, and each seed's outcome: K, B or C. */
    private static String rewards() throws IOException {
        List<String> lines = Files.readAllLines(Path.of("measurements", "staleness.csv"));
        List<String> names = List.of(lines.get(0).split(","));
        Map<String, Map<Integer, List<String[]>>> runs = new LinkedHashMap<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] run = line.split(",", -1);
            runs.computeIfAbsent(run[names.indexOf("correction")], c -> new TreeMap<>())
                    .computeIfAbsent(Integer.parseInt(run[names.indexOf("lag")]), l -> new ArrayList<>())
                    .add(run);
        }
        List<String> head = new ArrayList<>(List.of("correction"));
        runs.values().iterator().next().keySet().forEach(lag -> head.add("lag " + lag));
        StringBuilder table = new StringBuilder(Tables.head(head.toArray(String[]::new)));
        runs.forEach((correction, lags) -> {
            List<String> cells =
                    new ArrayList<>(List.of(Correction.of(correction).title()));
            lags.values().forEach(seeds -> {
                double mean = seeds.stream()
                        .mapToDouble(run -> Double.parseDouble(run[names.indexOf("last_reward")]))
                        .average()
                        .orElseThrow();
                String outcomes = seeds.stream()
                        .map(run ->
                                run[names.indexOf("outcome")].substring(0, 1).toUpperCase(Locale.ROOT))
                        .collect(Collectors.joining());
                cells.add(number(mean, 2) + " " + outcomes);
            });
            table.append(Tables.row(cells.toArray(String[]::new)));
        });
        return table.toString();
    }

    private static String earlyWarning() throws IOException {
        JsonNode alarm = JsonFile.read(Path.of("measurements", "early-warning.json"), JsonNode.class);
        StringBuilder table =
                new StringBuilder(Tables.head("indicator", "AUROC", "lead, updates", "other runs with an alarm"));
        for (JsonNode rating : alarm.path("ratings")) {
            table.append(Tables.row(
                    rating.path("indicator").textValue(),
                    interval(rating.path("auroc"), 2),
                    interval(rating.path("lead"), 0),
                    number(100 * rating.path("falseAlarms").asDouble(), 0) + " %"));
        }
        return table.toString();
    }

    private static String interval(JsonNode of, int decimals) {
        return number(of.path("value").asDouble(), decimals) + " ("
                + number(of.path("low").asDouble(), decimals) + " to "
                + number(of.path("high").asDouble(), decimals) + ")";
    }

    private static Map<String, String> topology() throws IOException {
        JsonNode report = read("topology.json", JsonNode.class);
        StringBuilder table = new StringBuilder(Tables.head(
                "case", "copy MB/s", "topology MB/s", "rollouts/s", "topology : copy (goal 0.5)", "by processor time"));
        for (JsonNode each : report.path("throughput")) {
            table.append(Tables.row(
                    as(each.path("of"), ThroughputCase.class).label(),
                    range(each.path("copy_megabytes"), 0),
                    range(each.path("megabytes"), 0),
                    number(each.at("/rollouts/median").asDouble(), 0),
                    range(each.path("ratio"), 2),
                    range(each.path("processor_ratio"), 2)));
        }
        List<Goal> goals = new ArrayList<>();
        for (JsonNode goal : report.path("goals")) {
            goals.add(as(goal, Goal.class));
        }
        return Map.of(
                "throughput",
                table.toString(),
                "goals",
                goals(goals),
                "origin",
                origin(as(report.path("origin"), ReportOrigin.class)));
    }

    private static <T> T as(JsonNode json, Class<T> type) throws IOException {
        return JsonFile.read(json.toString(), type);
    }

    private static String range(JsonNode sample, int decimals) throws IOException {
        return as(sample, Sample.class).range(decimals);
    }

    private static Map<String, String> replay() throws IOException {
        ReplayBenchmark.Report report = read("replay.json", ReplayBenchmark.Report.class);
        StringBuilder table = new StringBuilder(Tables.head(
                "response tokens, rollouts",
                "topology, rollouts/s",
                "reading",
                "as recorded",
                "corrections",
                "three corrections",
                "reading : topology",
                "corrections : topology",
                "three : topology",
                "live heap at most, MB"));
        for (ReplayBenchmark.Result each : report.results()) {
            table.append(Tables.row(
                    each.responseTokens() + ", " + each.rollouts(),
                    number(each.rates().topology().median(), 0),
                    number(each.rates().reading().median(), 0),
                    number(each.rates().asRecorded().median(), 0),
                    number(each.rates().corrections().median(), 0),
                    number(each.rates().threeCorrections().median(), 0),
                    each.ratios().reading().range(1),
                    each.ratios().corrections().range(1),
                    each.ratios().threeCorrections().range(1),
                    number(each.heapMegabytes().max(), 0)));
        }
        return Map.of("rates", table.toString(), "goals", goals(report.goals()), "origin", origin(report.origin()));
    }

    private static String costs(GrowthBenchmark.Report growth) {
        StringBuilder table = new StringBuilder(Tables.head(
                "varied",
                "rollouts",
                "partitions",
                "instances",
                "tokens",
                "topology, us of processor time",
                "broker, us",
                "rollouts/s",
                "kB on the log",
                "kB of rollouts, scores, trajectories"));
        for (Measured each : growth.measured()) {
            table.append(Tables.row(
                    each.varied() == null ? "" : each.varied().words(),
                    number(each.at().rollouts(), 0),
                    number(each.at().partitions(), 0),
                    number(each.at().instances(), 0),
                    number(each.at().responseTokens(), 0),
                    each.sample(Cost::processorMicros).range(0),
                    each.sample(Cost::brokerMicros).range(0),
                    number(
                            each.sample(cost -> each.at().rollouts() / cost.seconds())
                                    .median(),
                            0),
                    kilobytes(each, LogBytes::sum),
                    kilobytes(each, LogBytes::rollouts) + ", " + kilobytes(each, LogBytes::scores) + ", "
                            + kilobytes(each, LogBytes::trajectories)));
        }
        return table.toString();
    }

    private static String kilobytes(Measured of, ToDoubleFunction<LogBytes> bytes) {
        return number(of.sample(cost -> bytes.applyAsDouble(cost.log())).median() / 1e3, 1);
    }

    private static String exponents(GrowthBenchmark.Report growth) {
        StringBuilder table =
                new StringBuilder(Tables.head("over", "cost of a rollout", "exponent", "standard error", "bound", ""));
        for (Growth each : growth.growth()) {
            double bound = each.dimension().bound();
            table.append(Tables.row(
                    each.dimension().words() + " " + number(each.least(), 0) + " to " + number(each.most(), 0),
                    each.cost(),
                    number(each.fit().exponent(), 3),
                    number(each.fit().standardError(), 3),
                    number(bound, 2),
                    each.fit().exponent() <= bound ? "holds" : "**grows**"));
        }
        return table.toString();
    }

    private static String plan(CapacityPlan plan) {
        StringBuilder table = new StringBuilder(Tables.head("", "planned", "measured", "extrapolated", "by"));
        for (CapacityPlan.Line line : plan.lines()) {
            table.append(Tables.row(
                    line.what(),
                    line.planned() + (line.unit().isEmpty() ? "" : " " + line.unit()),
                    line.measured(),
                    line.extrapolated(),
                    line.by()));
        }
        return table.toString();
    }

    private static String knees() throws IOException {
        StringBuilder table = new StringBuilder(Tables.head(
                "workload, curve",
                "copy MB/s",
                "knee, rollouts/s",
                "of the copy",
                "end to end p50, p99 ms, at the highest rate followed",
                "limited beyond it by",
                "processor load there",
                "commit"));
        forEachCurve(OPEN, (label, commit, curve) -> table.append(knee(label, commit, curve)));
        return table.toString();
    }

    private static void forEachCurve(List<String> names, CurveRow row) throws IOException {
        for (String name : names) {
            LoadReport report = read(name + "/report.json", LoadReport.class);
            for (Curve curve : report.curves()) {
                row.add(labelled(name, curve.settings()), report.origin().commit(), curve);
            }
        }
    }

    private interface CurveRow {
        void add(String label, String commit, Curve curve);
    }

    private static String knee(String label, String commit, Curve curve) {
        Comparator<PointResult> byRate =
                Comparator.comparingDouble(p -> p.rates().offered());
        PointResult followed = curve.points().stream()
                .filter(point -> point.use().limit() == Limit.LOAD)
                .max(byRate)
                .orElseThrow();
        Optional<PointResult> beyond = curve.points().stream()
                .filter(point -> point.use().limit() != Limit.LOAD)
                .min(byRate);
        return Tables.row(
                label,
                number(curve.baseline().copyMegabytesPerSecond(), 0),
                number(curve.knee().rate(), 0),
                number(followed.rates().ofBaseline(), 2),
                number(followed.latencies().endToEnd().p50(), 0) + ", "
                        + number(followed.latencies().endToEnd().p99(), 0) + " at "
                        + number(followed.rates().offered(), 0) + "/s",
                beyond.map(point -> point.use().limit())
                        .map(limit -> limit == Limit.TOPOLOGY ? "topology" : limit.words())
                        .orElse(""),
                beyond.map(point -> number(point.use().processorLoad(), 2)).orElse(""),
                commit);
    }

    private static String saturation() throws IOException {
        StringBuilder table = new StringBuilder(Tables.head(
                "generators",
                "published at full speed",
                "making records takes of their time",
                "us per record",
                "commit"));
        forEachCurve(List.of("saturation"), (label, commit, curve) -> {
            Baseline measured = curve.baseline();
            table.append(Tables.row(
                    number(measured.generators(), 0),
                    number(measured.publishRolloutsPerSecond(), 0) + " rollouts/s, "
                            + number(measured.publishMegabytesPerSecond(), 0) + " MB/s",
                    number(100 * measured.generatorShare(), 0) + " %",
                    number(measured.ownMicros(), 1),
                    commit));
        });
        return table.toString();
    }

    private static String fixedRates() throws IOException {
        StringBuilder table = new StringBuilder(Tables.head(
                "workload, curve",
                "rollouts/s published",
                "into batches",
                "end to end p50, p99 ms",
                "tokens trained on",
                "versions behind",
                "ESS ratio",
                "s until the backlog is worked off",
                "s without a batch, until caught up after a kill",
                "commit"));
        forEachCurve(FIXED, (label, commit, curve) -> {
            for (PointResult point : curve.points()) {
                table.append(Tables.row(
                        label,
                        number(point.rates().offered(), 0),
                        number(point.rates().achieved(), 0),
                        number(point.latencies().endToEnd().p50(), 0) + ", "
                                + number(point.latencies().endToEnd().p99(), 0),
                        number(100 * point.batches().trainedShare(), 0) + " %",
                        number(point.batches().stalenessMean(), 1),
                        number(point.batches().ess(), 2),
                        point.recovery().drainSeconds() < 0
                                ? ""
                                : number(point.recovery().drainSeconds(), 1),
                        point.recovery().gapSeconds() < 0
                                ? ""
                                : number(point.recovery().gapSeconds(), 2) + ", "
                                        + number(point.recovery().recoverySeconds(), 1),
                        commit));
            }
        });
        return table.toString();
    }

    private static String closedLoops() throws IOException {
        StringBuilder table = new StringBuilder(Tables.head(
                "workload",
                "run",
                "durability",
                "ms per step",
                "of the plain loop",
                "tokens/s",
                "of the synchronous run",
                "s to the reward",
                "reward of the last steps",
                "versions behind",
                "ESS ratio",
                "idle: generator, scorer, learner",
                "commit"));
        for (String name : CLOSED) {
            ClosedReport report = read(name + "/report.json", ClosedReport.class);
            for (ClosedCurve curve : report.curves()) {
                String label = labelled(name, curve.settings());
                String commit = report.origin().commit();
                if (curve.plain() != null) {
                    table.append(run(label, "plain loop", "", curve.plain(), curve.plain(), commit));
                    label = "";
                }
                for (ClosedRun run : curve.runs()) {
                    String eta = run.settings().getOrDefault("admission.eta", "2");
                    String durability = report.durability().name().toLowerCase(Locale.ROOT);
                    table.append(run(label, "eta " + eta, durability, run, curve.plain(), commit));
                    label = "";
                }
            }
        }
        return table.toString();
    }

    private static String run(
            String label, String name, String durability, ClosedRun run, @Nullable ClosedRun plain, String commit) {
        return Tables.row(
                label,
                name,
                durability,
                number(run.millisPerStep(), 0),
                plain == null ? "" : number(run.millisPerStep() / plain.millisPerStep(), 2),
                number(run.tokensPerSecond(), 0),
                number(run.speed().speedUp(), 1),
                run.speed().secondsToReward() < 0 ? "" : number(run.speed().secondsToReward(), 1),
                number(run.lastReward(), 2),
                number(run.staleness(), 1),
                number(run.essRatio(), 2),
                run.use().idle().isEmpty()
                        ? ""
                        : idle(run, "generator") + ", " + idle(run, "scorer") + ", " + idle(run, "learner"),
                commit);
    }

    private static String idle(ClosedRun run, String role) {
        return run.use().idle().containsKey(role)
                ? number(100 * run.use().idle().get(role), 0) + " %"
                : "-";
    }

    private static String labelled(String name, Map<String, String> settings) {
        return "`" + name + "`" + (settings.isEmpty() ? "" : ": " + SettingsLabel.of(settings));
    }

    private static String number(double value, int decimals) {
        return String.format(Locale.ROOT, "%,." + decimals + "f", value);
    }
}
