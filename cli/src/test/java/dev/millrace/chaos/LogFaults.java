package dev.millrace.chaos;

import dev.millrace.chaos.loss.Compaction;
import dev.millrace.chaos.loss.Lost;
import dev.millrace.chaos.loss.Retention;
import dev.millrace.chaos.loss.TailCut;
import dev.millrace.chaos.loss.UncleanElection;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.chaos.process.Suspension;
import dev.millrace.log.LogConnection;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Takes away what the log holds: records that compaction supersedes, or some that were acknowledged. */
final class LogFaults {
    private static final long PILE_UP_S = 4;

    private final Scene scene;
    private final LogWatch watch;
    private final LogConnection connection;
    private final AdvisedOperator advised;
    private final List<Lost> lost = new ArrayList<>();

    /** @param advised repairs a run that does not continue by itself */
    LogFaults(Scene scene, LogWatch watch, LogConnection connection, AdvisedOperator advised) {
        this.scene = scene;
        this.watch = watch;
        this.connection = connection;
        this.advised = advised;
    }

    /** What the log has lost so far. */
    List<Lost> lost() {
        return List.copyOf(lost);
    }

    /** Compacts every compacted topic for as long as the fault lasts. */
    void compact(FaultCourse course) throws InterruptedException {
        try (Compaction compaction = Compaction.of(connection)) {
            long before = compaction.bytes();
            course.last();
            course.note(String.format(
                    Locale.ROOT,
                    "%d topics, from %.1f to %.1f MB",
                    compaction.topics().size(),
                    before / 1e6,
                    compaction.bytes() / 1e6));
        }
    }

    FaultOutcome tailLost(FaultCourse course) throws InterruptedException {
        int node = course.random().nextInt(scene.brokers().brokers().size());
        watch.hold();
        try {
            scene.brokers().brokers().get(node).kill();
            TailCut.of(scene.brokerDirectory(node), course.topic(), course.random())
                    .ifPresent(cut -> lost(course, cut));
            course.last();
            scene.brokers().restart(node);
        } finally {
            watch.resume();
        }
        return advised.repaired(course);
    }

    FaultOutcome retention(FaultCourse course) throws InterruptedException {
        List<Suspension> readers = new ArrayList<>();
        try {
            for (RunMember member : scene.troupe().members()) {
                if (member.role().reads().contains(course.fault().target())) {
                    readers.add(Suspension.of(scene.troupe().of(member.name()).pid()));
                }
            }
            TimeUnit.SECONDS.sleep(PILE_UP_S);
            Retention.of(connection, course.topic(), course.random()).ifPresent(cut -> lost(course, cut));
        } finally {
            readers.forEach(Suspension::close);
        }
        return advised.repaired(course);
    }

    FaultOutcome uncleanElection(FaultCourse course) throws InterruptedException {
        String topic = course.topic();
        int number = course.random().nextInt(UncleanElection.partitions(connection, topic));
        watch.hold();
        try (UncleanElection election = UncleanElection.of(connection, topic, number)) {
            int follower = election.follower() - 1;
            int leader = election.leader() - 1;
            scene.brokers().brokers().get(follower).kill();
            election.awaitAlone();
            course.last();
            long end = election.end();
            scene.brokers().brokers().get(leader).kill();
            scene.brokers().restart(follower);
            election.elect(end)
                    .ifPresentOrElse(
                            cut -> lost(course, cut),
                            () -> course.note("nothing was written to " + topic + "-" + number + " meanwhile"));
            scene.brokers().restart(leader);
            election.restore();
        } finally {
            watch.resume();
        }
        return advised.repaired(course);
    }

    private void lost(FaultCourse course, Lost cut) {
        lost.add(cut);
        course.note(cut.toString());
    }
}
