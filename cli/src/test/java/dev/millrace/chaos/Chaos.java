package dev.millrace.chaos;

import dev.millrace.chaos.check.Check;
import dev.millrace.chaos.check.EndChecks;
import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.fault.FaultKind;
import dev.millrace.chaos.fault.FaultSchedule;
import dev.millrace.chaos.garbage.Litter;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.observe.ProcessFigures;
import dev.millrace.chaos.observe.ProcessHeap;
import dev.millrace.chaos.process.Part;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.log.run.RunLog;
import dev.millrace.report.ReportOrigin;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Injects faults into its own run for a while, and checks the result.
 *
 * <p>Every process that it starts ends with {@link #run}, however that ends.
 */
public final class Chaos {
    private static final Duration START_LIMIT = Duration.ofMinutes(3);
    private static final double CALM_SECONDS = 25;
    private static final long DRAIN_LIMIT_S = 60;
    private static final long SETTLE_MS = 45_000;
    private static final int FIRST_VERSIONS = 3;
    private static final double SETTLED_AGE_SECONDS = 20;
    private static final long SAMPLE_MS = 3_000;
    /** What a role comes to hold before it has met everything that a run does is no growth. */
    private static final double WARM_SECONDS = 240;

    private static final double HEAPS_IN_A_RUN = 15;
    private static final double LEAST_HEAP_SECONDS = 45;
    private static final double MOST_HEAP_SECONDS = 240;

    /** Topics that can lose their ends, with the run's and without its prefix. */
    private static final List<String> LOSING = List.of(
            "run",
            "prompts",
            "rollouts",
            "scores",
            "trajectories",
            "batches",
            "policy-versions",
            "weights",
            "optimizer-state",
            "training-log",
            "serving",
            "outcomes",
            "admission",
            "dead-letters",
            "__consumer_offsets");

    private final ChaosPlan plan;
    private final ReportOrigin origin;
    private final Consumer<String> out;
    private final List<FaultOutcome> outcomes = new ArrayList<>();
    private final Holdings holdings = new Holdings();

    /**
     * @param origin of the result
     * @param out takes a line at each fault, and a few before and after
     */
    public Chaos(ChaosPlan plan, ReportOrigin origin, Consumer<String> out) {
        this.plan = plan;
        this.origin = origin;
        this.out = out;
    }

    /**
     * Runs until the time is over and everything was looked at.
     *
     * @throws InterruptedException if the thread is; the processes are gone then
     * @throws ChaosException if the run could not even begin
     */
    public ChaosResult run() throws InterruptedException, IOException {
        out.accept("starting " + plan.brokers() + (plan.brokers() == 1 ? " broker" : " brokers") + " and "
                + RunMember.ofRun().size() + " processes in " + plan.directory());
        try (Scene scene = Scene.open(plan);
                RunLog log = scene.awaitLog(START_LIMIT);
                LogWatch watch = scene.watch(log.connection())) {
            Litter litter = new Litter(log.connection());
            Scene.await("the first versions", START_LIMIT, () -> watch.versions() >= FIRST_VERSIONS);
            Thread sampler = new Thread(() -> sample(scene), "holdings");
            sampler.setDaemon(true);
            sampler.start();
            long began = System.nanoTime();
            FaultInflictor inflictor = new FaultInflictor(scene, watch, log.connection(), litter, plan.recoveryLimit());
            faults(scene, watch, inflictor, began);
            double seconds = (System.nanoTime() - began) / 1e9;
            out.accept("calm");
            double calmSeconds = CALM_SECONDS + (plan.losesRecords() ? 2e-3 * ChaosPlan.RELEASE_AGAIN_MS : 0);
            TimeUnit.MILLISECONDS.sleep((long) (1e3 * calmSeconds));
            long calmSinceMs = System.currentTimeMillis() - (long) (1e3 * calmSeconds);
            sampler.interrupt();
            sampler.join();
            drain(scene, watch);
            out.accept("reading the result");
            EndChecks ends =
                    new EndChecks(log.connection(), scene.config(), litter.places(), inflictor.lost(), ChaosPlan.GROUP);
            List<Check> checks =
                    new ArrayList<>(ends.all(Math.min(calmSinceMs, System.currentTimeMillis() - SETTLE_MS)));
            checks.add(EndChecks.holdings(holdings.changes()));
            return new ChaosResult(
                    ChaosResult.FORMAT,
                    origin,
                    plan.seed(),
                    plan.brokers(),
                    seconds,
                    watch.versions(),
                    ends.rolloutsSeen(),
                    ends.lost(),
                    ends.repeated(),
                    watch.secondsLost(),
                    outcomes,
                    scene.troupe().departures(),
                    holdings.changes(),
                    checks);
        }
    }

    private void faults(Scene scene, LogWatch watch, FaultInflictor inflictor, long began)
            throws InterruptedException, IOException {
        FaultSchedule schedule = schedule();
        while (System.nanoTime() - began < plan.duration().toNanos() && outcomes.size() < plan.mostFaults()) {
            Fault fault = schedule.next();
            int before = scene.troupe().departures().size();
            FaultOutcome outcome = inflictor.inflict(fault);
            outcomes.add(outcome);
            out.accept(line(outcome));
            scene.troupe().departures().stream()
                    .skip(before)
                    .forEach(left -> out.accept("    " + left.member() + " ended by itself: " + left.words()));
            if (!outcome.isSurvived()
                    && watch.secondsWithoutVersion() > plan.recoveryLimit().toSeconds()) {
                out.accept("the run has ended: no version for " + Math.round(watch.secondsWithoutVersion())
                        + " s after " + fault);
                return;
            }
        }
    }

    private FaultSchedule schedule() {
        List<String> brokers = IntStream.rangeClosed(1, plan.brokers())
                .mapToObj(node -> "broker-" + node)
                .toList();
        Map<FaultKind.Target, List<String>> targets = new EnumMap<>(FaultKind.Target.class);
        targets.put(FaultKind.Target.MEMBER, names(null));
        targets.put(FaultKind.Target.TOPOLOGY, names(Part.TOPOLOGY));
        targets.put(FaultKind.Target.BROKER, brokers);
        targets.put(FaultKind.Target.NETWORK, brokers);
        targets.put(
                FaultKind.Target.TOPIC,
                new RunTopics(ChaosPlan.PREFIX)
                        .required().stream()
                                .map(topic -> topic.substring(ChaosPlan.PREFIX.length()))
                                .toList());
        targets.put(FaultKind.Target.GENERATOR, names(Part.GENERATOR));
        targets.put(
                FaultKind.Target.PROCESS,
                Stream.concat(names(null).stream(), brokers.stream()).toList());
        targets.put(FaultKind.Target.LOG, LOSING);
        targets.put(FaultKind.Target.COPIES, plan.brokers() < ChaosPlan.COPIES ? List.of() : LOSING);
        targets.put(
                FaultKind.Target.UNREAD,
                Arrays.stream(Part.values())
                        .flatMap(part -> part.reads().stream())
                        .distinct()
                        .toList());
        return new FaultSchedule(plan.seed(), plan.kinds(), targets);
    }

    private static List<String> names(@Nullable Part part) {
        return RunMember.ofRun().stream()
                .filter(member -> part == null || member.role() == part)
                .map(RunMember::name)
                .toList();
    }

    private String line(FaultOutcome outcome) {
        return String.format(
                Locale.ROOT,
                "%5.0f s  %3d  %-34s %s%s%s",
                outcome.atSeconds(),
                outcome.fault().number(),
                outcome.fault(),
                outcome.partSeconds() == null
                        ? ""
                        : String.format(Locale.ROOT, "%s back after %.1f s, ", outcome.part(), outcome.partSeconds()),
                outcome.runSeconds() == null
                        ? "NO VERSION within " + plan.recoveryLimit().toSeconds() + " s"
                        : String.format(Locale.ROOT, "versions after %.1f s", outcome.runSeconds()),
                outcome.notes().isEmpty() ? "" : "; " + String.join("; ", outcome.notes()));
    }

    private void sample(Scene scene) {
        double everySeconds = Math.max(
                LEAST_HEAP_SECONDS, Math.min(MOST_HEAP_SECONDS, plan.duration().toMillis() / 1e3 / HEAPS_IN_A_RUN));
        long heapsNanos = System.nanoTime() + (long) (1e9 * (WARM_SECONDS - everySeconds));
        try {
            while (true) {
                Map<String, Long> settled = settled(scene);
                settled.forEach((name, pid) -> ProcessFigures.of(pid).ifPresent(figures -> add(name, figures)));
                if (ProcessHeap.isAvailable() && System.nanoTime() - heapsNanos > 1e9 * everySeconds) {
                    heapsNanos = System.nanoTime();
                    for (Map.Entry<String, Long> one : settled.entrySet()) {
                        ProcessHeap.megabytes(one.getValue()).ifPresent(megabytes -> add(one.getKey(), megabytes));
                    }
                }
                TimeUnit.MILLISECONDS.sleep(SAMPLE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Processes that have been there for a while, by what they are. */
    private Map<String, Long> settled(Scene scene) {
        Map<String, Long> pids = new TreeMap<>();
        scene.troupe().alive().forEach((name, life) -> {
            if (life.ageSeconds() > SETTLED_AGE_SECONDS) {
                pids.put(name, life.pid());
            }
        });
        for (int node = 0; node < plan.brokers(); node++) {
            pids.put("broker-" + (node + 1), scene.brokers().brokers().get(node).pid());
        }
        return pids;
    }

    private void add(String name, double liveHeapMegabytes) {
        synchronized (holdings) {
            holdings.add(name, liveHeapMegabytes);
        }
    }

    private void add(String name, ProcessFigures figures) {
        synchronized (holdings) {
            holdings.add(name, figures);
        }
    }

    /** Releases nothing any more, and waits until what was released has come. */
    private void drain(Scene scene, LogWatch watch) throws InterruptedException {
        out.accept("stopping");
        for (RunMember member : scene.troupe().members()) {
            if (member.role() == Part.ADMISSION && !scene.troupe().retire(member.name())) {
                out.accept("    " + member.name() + " did not stop when it was asked to");
            }
        }
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DRAIN_LIMIT_S);
        while (watch.open() > 0 && System.nanoTime() < deadline) {
            TimeUnit.MILLISECONDS.sleep(SAMPLE_MS / 10);
        }
        long seen;
        do { // what has come is trained on
            seen = watch.versions();
            TimeUnit.MILLISECONDS.sleep(SAMPLE_MS);
        } while (watch.versions() > seen && System.nanoTime() < deadline);
        for (Part part : List.of(Part.GENERATOR, Part.SCORER, Part.TOPOLOGY, Part.LEARNER)) {
            for (RunMember member : scene.troupe().members()) {
                if (member.role() == part && !scene.troupe().retire(member.name())) {
                    out.accept("    " + member.name() + " did not stop when it was asked to");
                }
            }
        }
    }
}
