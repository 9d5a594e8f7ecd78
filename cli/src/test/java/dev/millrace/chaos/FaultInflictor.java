package dev.millrace.chaos;

import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.garbage.Litter;
import dev.millrace.chaos.loss.Lost;
import dev.millrace.chaos.network.Weather;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.log.LogConnection;
import java.io.IOException;
import java.time.Duration;
import java.util.List;

/** Does faults to a scene, and sees it recover. Owned by one thread. */
final class FaultInflictor {
    private final Scene scene;
    private final LogWatch watch;
    private final Litter litter;
    private final double limitSeconds;
    private final RoleFaults roles;
    private final BrokerFaults brokers;
    private final LogFaults logs;
    private final ClockFault clocks;
    private final LiarFault liars;
    private final long beganNanos = System.nanoTime();

    FaultInflictor(Scene scene, LogWatch watch, LogConnection connection, Litter litter, Duration recoveryLimit) {
        this.scene = scene;
        this.watch = watch;
        this.litter = litter;
        this.limitSeconds = recoveryLimit.toMillis() / 1e3;
        this.roles = new RoleFaults(scene, watch);
        this.brokers = new BrokerFaults(scene, watch);
        AdvisedOperator advised = new AdvisedOperator(scene, watch, connection);
        this.logs = new LogFaults(scene, watch, connection, advised);
        this.clocks = new ClockFault(scene, watch);
        this.liars = new LiarFault(scene, watch, advised);
    }

    /** Does a fault and waits until the run continues, or the limit has passed. */
    FaultOutcome inflict(Fault fault) throws InterruptedException, IOException {
        double atSeconds = (System.nanoTime() - beganNanos) / 1e9;
        FaultCourse course = new FaultCourse(scene, watch, fault, atSeconds, limitSeconds);
        return switch (fault.kind()) {
            case KILL -> roles.kill(course);
            case EMPTY_STATE -> roles.killAndLoseState(course);
            case TERM -> roles.term(course);
            case HALT -> roles.halt(course);
            case HALT_PROTOCOL -> roles.haltProtocol(course);
            case PAUSE, PAUSE_LONG -> roles.pause(course);
            case ZOMBIE -> roles.zombie(course);
            case BROKER_KILL, BROKER_AWAY, BROKER_AWAY_LONG -> brokers.kill(course);
            case BROKER_STOP -> brokers.stop(course);
            case BROKER_PAUSE -> brokers.pause(course);
            case BROKER_SLOW -> brokers.slow(course);
            case DISK_FULL -> brokers.diskFull(course);
            case DISK_READ_ONLY -> brokers.diskReadOnly(course);
            case NETWORK_LATE ->
                brokers.network(course, Weather.late(100 + course.random().nextInt(400)));
            case NETWORK_LOSSY ->
                brokers.network(
                        course, Weather.lossy(0.005 + 0.03 * course.random().nextDouble()));
            case NETWORK_CUT -> brokers.network(course, Weather.CUT);
            case NETWORK_SILENT, NETWORK_SILENT_LONG -> brokers.network(course, Weather.SILENCE);
            case NETWORK_ONE_WAY ->
                brokers.network(course, course.random().nextBoolean() ? Weather.NO_ANSWERS : Weather.NO_QUESTIONS);
            case GARBAGE -> garbage(course);
            case CLOCK -> clocks.inflict(course);
            case LIAR -> liars.inflict(course);
            case COMPACTION -> {
                logs.compact(course);
                yield roles.killAndLoseState(course);
            }
            case TAIL_LOST -> logs.tailLost(course);
            case RETENTION -> logs.retention(course);
            case UNCLEAN_ELECTION -> logs.uncleanElection(course);
        };
    }

    /** What the log has lost so far. */
    List<Lost> lost() {
        return logs.lost();
    }

    private FaultOutcome garbage(FaultCourse course) throws InterruptedException {
        Fault fault = course.fault();
        course.note(litter.drop(ChaosPlan.PREFIX + fault.target(), fault.seed()));
        return course.overAt(watch.since(System.nanoTime()));
    }
}
