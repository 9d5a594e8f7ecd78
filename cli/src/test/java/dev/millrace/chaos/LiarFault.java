package dev.millrace.chaos;

import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.LyingInterceptor;
import dev.millrace.chaos.process.RoleProcess;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.chaos.process.Troupe;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Has a generator lie about its log-probs until it is found out; the run must go on without it. */
final class LiarFault {
    private static final String ADMISSION = "admission";
    private static final double FOUND_OUT_LIMIT_S = 120;

    private final Scene scene;
    private final Troupe troupe;
    private final LogWatch watch;
    private final AdvisedOperator advised;

    /** @param advised lifts the quarantine */
    LiarFault(Scene scene, LogWatch watch, AdvisedOperator advised) {
        this.scene = scene;
        this.troupe = scene.troupe();
        this.watch = watch;
        this.advised = advised;
    }

    FaultOutcome inflict(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        troupe.take(member.name()).kill();
        watch.generatorKilled();
        long nanos = System.nanoTime();
        RoleProcess liar = troupe.again(member.name(), List.of(), LyingInterceptor.settings());
        Optional<String> lift = Optional.empty();
        while (lift.isEmpty() && (System.nanoTime() - nanos) / 1e9 < FOUND_OUT_LIMIT_S) {
            TimeUnit.SECONDS.sleep(1);
            lift = scene.operator().remedy(troupe.of(ADMISSION), "quarantine", member.name());
        }
        if (lift.isEmpty()) {
            course.note("NOT FOUND OUT within " + Math.round(FOUND_OUT_LIMIT_S) + " s");
        } else {
            course.note(String.format(
                    Locale.ROOT, "in quarantine after %.1f s, beginning included", (System.nanoTime() - nanos) / 1e9));
            LogWatch.Mark without = watch.since(System.nanoTime());
            if (course.awaitVersions(without, course.limitSeconds()).isEmpty()) {
                course.note("NO VERSION without it");
            }
        }
        liar.kill();
        LogWatch.Mark mark = course.gone(member, System.nanoTime());
        troupe.giveBack(member.name());
        lift.ifPresent(command -> advised.enter(course, command));
        FaultOutcome outcome = course.overAt(mark);
        return lift.isPresent() ? outcome : outcome.failed();
    }
}
