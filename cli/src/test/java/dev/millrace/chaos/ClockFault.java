package dev.millrace.chaos;

import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.RoleProcess;
import dev.millrace.chaos.process.Troupe;
import java.time.Duration;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/** Sets the wall clock of a process, a role's or a broker's, hours forwards or back, and then right again. */
final class ClockFault {
    private static final String BROKER = "broker-";
    private static final long STOP_LIMIT_S = 45;
    private static final long NOTICED_S = 3;

    private final Scene scene;
    private final Troupe troupe;
    private final LogWatch watch;

    ClockFault(Scene scene, LogWatch watch) {
        this.scene = scene;
        this.troupe = scene.troupe();
        this.watch = watch;
    }

    FaultOutcome inflict(FaultCourse course) throws InterruptedException {
        SplittableRandom random = course.random();
        Duration shift = Duration.ofHours(random.nextBoolean() ? 1 + random.nextInt(23) : -1 - random.nextInt(23));
        course.note(String.format(Locale.ROOT, "%+d h", shift.toHours()));
        boolean isBroker = course.fault().target().startsWith(BROKER);
        long pid = isBroker
                ? scene.brokers().brokers().get(course.node()).pid()
                : troupe.of(course.hit().name()).pid();
        try {
            scene.clock().set(pid, shift);
            LogWatch.Mark wrong = watch.since(System.nanoTime());
            course.last();
            boolean goesOn = course.awaitVersions(wrong, 0).isPresent();
            course.note(goesOn ? "versions meanwhile" : "no versions meanwhile");
            scene.clock().set(pid, Duration.ZERO);
        } catch (ChaosException gone) {
            course.note(String.valueOf(gone.getMessage()));
        }
        long nanos = System.nanoTime();
        if (!isBroker) {
            startAgainIfTold(course);
        }
        FaultOutcome outcome = course.overAt(watch.since(nanos));
        return isBroker ? outcome.of("broker") : outcome;
    }

    /** Does what the alarm about a clock that was set back says, where it stands. */
    private void startAgainIfTold(FaultCourse course) throws InterruptedException {
        TimeUnit.SECONDS.sleep(NOTICED_S);
        String name = course.fault().target();
        if (scene.operator().isStanding(troupe.of(name), "clock-set-back")) {
            course.note("started again, as its alarm says");
            RoleProcess life = troupe.take(name);
            if (!life.stop(STOP_LIMIT_S)) {
                life.kill();
            }
            troupe.giveBack(name);
        }
    }
}
