package dev.millrace.workloads;

import dev.millrace.log.run.TopicsConfig;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.workloads.topology.Distribution;
import dev.millrace.workloads.topology.LoadPlan;
import dev.millrace.workloads.topology.RolloutShape;

/**
 * One point of a load test.
 *
 * @param warmUpSeconds uncounted load, at least 0
 * @param seconds of counted load, 1 to 3600
 * @param instances of the topology, 1 to 16
 * @param brokers started if no cluster is given, each in its own process, 1 to 9; with three, replication factor 3 and
 *     two in-sync replicas
 * @param brokerHeapMb at least 256
 * @param exactlyOnce false for at least once, to measure the cost of exactly-once delivery
 * @param seed of everything drawn
 * @param backlog on the log before the topology starts
 */
public record Workload(
        int warmUpSeconds,
        int seconds,
        int instances,
        int brokers,
        int brokerHeapMb,
        boolean exactlyOnce,
        long seed,
        LoadPlan load,
        RolloutShape rollouts,
        LearnerPlan learner,
        BacklogPlan backlog,
        FaultPlan fault,
        KneePlan knee,
        TopicsConfig topics,
        TopologyConfig topology,
        AlgorithmPlan algorithm) {

    private static final double MOST_ROLLOUTS = 1e8;

    public Workload {
        requireIn("warm_up_seconds", warmUpSeconds, 0, 3600);
        requireIn("seconds", seconds, 1, 3600);
        requireIn("instances", instances, 1, 16);
        requireIn("brokers", brokers, 1, 9);
        requireIn("broker_heap_mb", brokerHeapMb, 256, 65_536);
        if (load.rolloutsPerSecond() * (warmUpSeconds + seconds) > MOST_ROLLOUTS) {
            throw new IllegalArgumentException(
                    "load.rollouts_per_second times warm_up_seconds + seconds must be at most 1e8 rollouts: "
                            + load.rolloutsPerSecond() + " * " + (warmUpSeconds + seconds));
        }
        if (backlog.rollouts() % rollouts.groupSize() != 0) {
            throw new IllegalArgumentException("backlog.rollouts must be whole groups of rollouts.group_size "
                    + rollouts.groupSize() + ": " + backlog.rollouts());
        }
        if (fault.killAfterSeconds() >= seconds) {
            throw new IllegalArgumentException("fault.kill_after_seconds must be below seconds " + seconds
                    + ", or nothing is seen of the recovery: " + fault.killAfterSeconds());
        }
        if (!exactlyOnce && fault.killAfterSeconds() > 0) {
            throw new IllegalArgumentException(
                    "fault.kill_after_seconds must be 0 with exactly_once=false, or rollouts are batched twice and"
                            + " counted twice: " + fault.killAfterSeconds());
        }
        if (topology.batch().maxOutstanding() > 0 && !learner.enabled()) {
            throw new IllegalArgumentException(
                    "topology.batch.max_outstanding " + topology.batch().maxOutstanding()
                            + " waits for a learner, and learner.enabled is false; enable it, or set max_outstanding to 0");
        }
    }

    private static void requireIn(String key, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(key + " must be " + least + " to " + most + ": " + value);
        }
    }

    public static Workload defaults() {
        return new Workload(
                3,
                10,
                1,
                1,
                512,
                true,
                1,
                LoadPlan.defaults(),
                RolloutShape.defaults(),
                LearnerPlan.defaults(),
                BacklogPlan.defaults(),
                FaultPlan.defaults(),
                KneePlan.defaults(),
                TopicsConfig.defaults(),
                TopologyConfig.defaults(),
                AlgorithmPlan.defaults());
    }

    public Workload with(RolloutShape other) {
        return with(load, other);
    }

    public Workload withRate(double perSecond) {
        return with(load.withRate(perSecond), rollouts);
    }

    private Workload with(LoadPlan otherLoad, RolloutShape otherRollouts) {
        return new Workload(
                warmUpSeconds,
                seconds,
                instances,
                brokers,
                brokerHeapMb,
                exactlyOnce,
                seed,
                otherLoad,
                otherRollouts,
                learner,
                backlog,
                fault,
                knee,
                topics,
                topology,
                algorithm);
    }

    /** @param rollouts on the log with their scores before the topology starts; whole groups, at most 10,000,000 */
    public record BacklogPlan(int rollouts) {
        public BacklogPlan {
            if (rollouts < 0 || rollouts > 10_000_000) {
                throw new IllegalArgumentException("rollouts must be 0 to 10000000: " + rollouts);
            }
        }

        public static BacklogPlan defaults() {
            return new BacklogPlan(0);
        }
    }

    /**
     * @param killAfterSeconds of counted load, after which one instance is killed and replaced; 0 kills none.
     *     Instances then run in their own processes
     */
    public record FaultPlan(int killAfterSeconds) {
        public FaultPlan {
            if (killAfterSeconds < 0) {
                throw new IllegalArgumentException("kill_after_seconds must be at least 0: " + killAfterSeconds);
            }
        }

        public static FaultPlan defaults() {
            return new FaultPlan(0);
        }
    }

    /**
     * Search for the knee.
     *
     * @param search from {@code load.rollouts_per_second} upwards
     * @param points most rates tried, 3 to 32
     */
    public record KneePlan(boolean search, int points) {
        public KneePlan {
            if (points < 3 || points > 32) {
                throw new IllegalArgumentException("points must be 3 to 32: " + points);
            }
        }

        public static KneePlan defaults() {
            return new KneePlan(false, 8);
        }
    }

    /**
     * A learner that takes batches in turn and publishes versions without computing.
     *
     * @param enabled if false, all rollouts come from one earlier version
     * @param stepMs time per batch
     */
    public record LearnerPlan(boolean enabled, Distribution stepMs) {
        public static LearnerPlan defaults() {
            return new LearnerPlan(true, Distribution.fixed(100));
        }
    }
}
