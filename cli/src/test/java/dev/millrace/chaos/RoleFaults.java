package dev.millrace.chaos;

import dev.millrace.chaos.halt.HaltAgent;
import dev.millrace.chaos.halt.HaltPoint;
import dev.millrace.chaos.halt.ProtocolPoint;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.Part;
import dev.millrace.chaos.process.RoleProcess;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.chaos.process.Suspension;
import dev.millrace.chaos.process.Troupe;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/** Ends, suspends and replaces the process of a role. */
final class RoleFaults {
    private static final long STOP_LIMIT_S = 45;
    private static final long HALT_LIMIT_S = 60;
    private static final long FENCED_LIMIT_S = 25;
    private static final int MOST_TIMES_TO_A_POINT = 6;

    private final Scene scene;
    private final Troupe troupe;
    private final LogWatch watch;

    RoleFaults(Scene scene, LogWatch watch) {
        this.scene = scene;
        this.troupe = scene.troupe();
        this.watch = watch;
    }

    FaultOutcome kill(FaultCourse course) throws InterruptedException {
        return kill(course, false);
    }

    FaultOutcome killAndLoseState(FaultCourse course) throws InterruptedException {
        return kill(course, true);
    }

    private FaultOutcome kill(FaultCourse course, boolean losesState) throws InterruptedException {
        RunMember member = course.hit();
        RoleProcess life = troupe.take(member.name());
        long nanos = System.nanoTime();
        life.kill();
        if (losesState) {
            troupe.loseState(member.name());
        }
        LogWatch.Mark mark = course.gone(member, nanos);
        troupe.giveBack(member.name());
        return course.overAt(mark);
    }

    FaultOutcome term(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        RoleProcess life = troupe.take(member.name());
        long nanos = System.nanoTime();
        if (!life.stop(STOP_LIMIT_S)) {
            life.kill();
            course.note("did not stop within " + STOP_LIMIT_S + " s");
        }
        LogWatch.Mark mark = watch.since(nanos);
        troupe.giveBack(member.name());
        return course.overAt(mark);
    }

    FaultOutcome halt(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        SplittableRandom random = course.random();
        List<String> topics = member.role().sendsTo();
        String topic = topics.get(random.nextInt(topics.size()));
        HaltPoint.When when = random.nextBoolean() ? HaltPoint.When.BEFORE : HaltPoint.When.AFTER;
        int nth = 1 + random.nextInt(MOST_TIMES_TO_A_POINT);
        return haltAt(
                course,
                member,
                List.of(HaltPoint.option(when, topic, nth)),
                HaltPoint.settings(),
                when.word() + " record " + nth + " to " + topic);
    }

    FaultOutcome haltProtocol(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        SplittableRandom random = course.random();
        List<ProtocolPoint> points = member.role().points();
        ProtocolPoint point = points.get(random.nextInt(points.size()));
        HaltPoint.When when = random.nextBoolean() ? HaltPoint.When.BEFORE : HaltPoint.When.AFTER;
        // a learner makes the versions that follow itself
        boolean isOnce = point == ProtocolPoint.LOAD && member.role() == Part.LEARNER;
        int nth = isOnce ? 1 : 1 + random.nextInt(MOST_TIMES_TO_A_POINT);
        return haltAt(
                course,
                member,
                HaltAgent.options(scene.directory(), when, point, nth),
                List.of(),
                when.word() + " " + point.word() + " " + nth);
    }

    private FaultOutcome haltAt(
            FaultCourse course, RunMember member, List<String> options, List<String> settings, String point)
            throws InterruptedException {
        troupe.take(member.name()).kill();
        RoleProcess armed = troupe.again(member.name(), options, settings);
        boolean reached = armed.awaitEnd(HALT_LIMIT_S);
        long nanos = System.nanoTime();
        if (!reached) {
            armed.kill();
        }
        course.note((reached ? "" : "did not come to ")
                + point
                + (reached && armed.exitStatus() != HaltPoint.STATUS ? ": " + armed.lastWords() : ""));
        LogWatch.Mark mark = course.gone(member, nanos);
        troupe.giveBack(member.name());
        return course.overAt(mark);
    }

    FaultOutcome pause(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        Suspension still = Suspension.of(troupe.of(member.name()).pid());
        try {
            course.last();
        } finally {
            still.close();
        }
        return course.overAt(watch.since(System.nanoTime()));
    }

    FaultOutcome zombie(FaultCourse course) throws InterruptedException {
        RunMember member = course.hit();
        RoleProcess zombie = troupe.take(member.name());
        FaultOutcome outcome;
        Suspension still = Suspension.of(zombie.pid());
        try {
            long nanos = System.nanoTime();
            if (member.role() == Part.TOPOLOGY) {
                troupe.loseState(member.name()); // the zombie has the folder's lock
            }
            LogWatch.Mark mark = watch.since(nanos);
            troupe.again(member.name());
            troupe.giveBack(member.name());
            outcome = course.overAt(mark);
            double left = course.fault().seconds() - (System.nanoTime() - nanos) / 1e9;
            if (left > 0) {
                TimeUnit.MILLISECONDS.sleep((long) (1e3 * left));
            }
        } finally {
            still.close();
        }
        LogWatch.Mark woken = watch.since(System.nanoTime());
        Optional<Double> onwards = course.awaitVersions(woken, course.limitSeconds());
        List<String> notes = new ArrayList<>(outcome.notes());
        if (zombie.awaitEnd(FENCED_LIMIT_S)) {
            notes.add("the zombie ended: " + zombie.lastWords());
        } else {
            notes.add("the zombie did not end by itself");
            if (!zombie.stop(STOP_LIMIT_S)) {
                zombie.kill();
                notes.add("nor when it was asked to");
            }
        }
        return new FaultOutcome(
                outcome.fault(),
                outcome.atSeconds(),
                outcome.part(),
                outcome.partSeconds(),
                onwards.isPresent() ? outcome.runSeconds() : null,
                notes);
    }
}
