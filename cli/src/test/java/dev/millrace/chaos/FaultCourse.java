package dev.millrace.chaos;

import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.Part;
import dev.millrace.chaos.process.RunMember;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A fault under way: what is known of it until it is over, and whether those it hit recover. */
final class FaultCourse {
    /** Steps after which the run has recovered. */
    private static final int VERSIONS = 2;

    private final Scene scene;
    private final LogWatch watch;
    private final Fault fault;
    private final double atSeconds;
    private final double limitSeconds;
    private final List<String> notes = new ArrayList<>();
    private @Nullable RunMember member;

    /**
     * @param atSeconds when it begins, since the first could have
     * @param limitSeconds of each recovery
     */
    FaultCourse(Scene scene, LogWatch watch, Fault fault, double atSeconds, double limitSeconds) {
        this.scene = scene;
        this.watch = watch;
        this.fault = fault;
        this.atSeconds = atSeconds;
        this.limitSeconds = limitSeconds;
    }

    Fault fault() {
        return fault;
    }

    double limitSeconds() {
        return limitSeconds;
    }

    /** Something that was seen. */
    void note(String note) {
        notes.add(note);
    }

    /** What is drawn for the fault: from the beginning at each call. */
    SplittableRandom random() {
        return new SplittableRandom(fault.seed());
    }

    /** Waits for the fault's duration. */
    void last() throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep((long) (1e3 * fault.seconds()));
    }

    /** The member that the fault is aimed at; its own recovery is waited for too. */
    RunMember hit() {
        RunMember hit = scene.troupe().member(fault.target());
        member = hit;
        return hit;
    }

    /** The broker that the fault is aimed at, from 0. */
    int node() {
        return Integer.parseInt(fault.target().substring(fault.target().lastIndexOf('-') + 1)) - 1;
    }

    /** The topic that the fault is aimed at. */
    String topic() {
        String topic = fault.target();
        return topic.startsWith("_") ? topic : ChaosPlan.PREFIX + topic;
    }

    /** From when on records count as new after a member that was hit is gone. */
    LogWatch.Mark gone(RunMember hit, long nanos) {
        if (hit.role() == Part.GENERATOR) {
            watch.generatorKilled();
        }
        return watch.since(nanos);
    }

    /** Waits until the run continues; seconds from the mark, empty if it does not within the limit. */
    Optional<Double> awaitVersions(LogWatch.Mark mark, double withinSeconds) throws InterruptedException {
        return watch.await(Part.LEARNER, "", VERSIONS, mark, withinSeconds);
    }

    /** It is over, and nobody's part was hit. */
    FaultOutcome over(Optional<Double> run) {
        return new FaultOutcome(fault, atSeconds, target(), null, run.orElse(null), notes);
    }

    /** It is over; what counts as recovery comes after the mark. */
    FaultOutcome overAt(LogWatch.Mark mark) throws InterruptedException {
        RunMember hit = member;
        Optional<Double> part = hit == null
                ? Optional.empty()
                : watch.await(hit.role(), hit.role() == Part.GENERATOR ? hit.name() : "", 1, mark, limitSeconds);
        Optional<Double> run = awaitVersions(mark, limitSeconds);
        return new FaultOutcome(
                fault,
                atSeconds,
                hit == null ? target() : hit.role().word(),
                part.orElse(null),
                run.orElse(null),
                notes);
    }

    private String target() {
        return fault.kind().target().name().toLowerCase(Locale.ROOT);
    }
}
