package dev.millrace.workloads;

import dev.millrace.log.run.TopicsConfig;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.workloads.topology.Distribution;
import dev.millrace.workloads.topology.LoadPlan;
import dev.millrace.workloads.topology.RolloutShape;

/**
 * One point of a load test.
 *
 * @param warmUpSeconds load before anything is counted, at least 0
 * @param seconds of load that are counted, 1 to 3600
 * @param instances of the topology, 1 to 16
 * @param brokers that are started where none is given, each in a process of its own, 1 to 9; of three, every partition has a
 *     copy on each, and a record counts when two have it
 * @param brokerHeapMb heap of each broker that is started, at least 256
 * @param exactlyOnce whether the topology runs exactly once, as it does everywhere else, or at least once, to see what
 *     exactly-once delivery costs
 * @param seed everything that is drawn follows from it
 * @param load how much is published
 * @param rollouts what is published
 * @param learner who takes the batches
 * @param backlog what lies there before the topology starts
 * @param fault what goes wrong
 * @param knee whether and how the knee is searched
 * @param topics how topics are made
 * @param topology what is under test
 * @param algorithm what it decides by
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

    /** Longest load that is kept track of, rollout by rollout. */
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

    /** Ten seconds of the default load after three of warm-up. */
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

    /** The same with other rollouts. */
    public Workload with(RolloutShape other) {
        return new Workload(
                warmUpSeconds,
                seconds,
                instances,
                brokers,
                brokerHeapMb,
                exactlyOnce,
                seed,
                load,
                other,
                learner,
                backlog,
                fault,
                knee,
                topics,
                topology,
                algorithm);
    }

    /** The same at another rate. */
    public Workload withRate(double perSecond) {
        return new Workload(
                warmUpSeconds,
                seconds,
                instances,
                brokers,
                brokerHeapMb,
                exactlyOnce,
                seed,
                load.withRate(perSecond),
                rollouts,
                learner,
                backlog,
                fault,
                knee,
                topics,
                topology,
                algorithm);
    }

    /**
     * What lies on the log before the topology starts.
     *
     * @param rollouts with their scores, whole groups, at most 10,000,000; 0 for none
     */
    public record BacklogPlan(int rollouts) {
        public BacklogPlan {
            if (rollouts < 0 || rollouts > 10_000_000) {
                throw new IllegalArgumentException("rollouts must be 0 to 10000000: " + rollouts);
            }
        }

        /** None. */
        public static BacklogPlan defaults() {
            return new BacklogPlan(0);
        }
    }

    /**
     * What goes wrong under load.
     *
     * @param killAfterSeconds of load that is counted, after which one instance of the topology is killed and another is
     *     started in its place at once; 0 kills none. Instances then run in processes of their own
     */
    public record FaultPlan(int killAfterSeconds) {
        public FaultPlan {
            if (killAfterSeconds < 0) {
                throw new IllegalArgumentException("kill_after_seconds must be at least 0: " + killAfterSeconds);
            }
        }

        /** Nothing. */
        public static FaultPlan defaults() {
            return new FaultPlan(0);
        }
    }

    /**
     * The search for the rate beyond which the system no longer follows.
     *
     * @param search whether it is searched for, from {@code load.rollouts_per_second} upwards
     * @param points rates that are tried at most, 3 to 32
     */
    public record KneePlan(boolean search, int points) {
        public KneePlan {
            if (points < 3 || points > 32) {
                throw new IllegalArgumentException("points must be 3 to 32: " + points);
            }
        }

        /** Not searched for. */
        public static KneePlan defaults() {
            return new KneePlan(false, 8);
        }
    }

    /**
     * A learner that takes batches one after the other and publishes a version after each, without computing anything.
     *
     * @param enabled whether there is one; without, all rollouts are sampled behind one version that was there before
     * @param stepMs how long it takes for a batch
     */
    public record LearnerPlan(boolean enabled, Distribution stepMs) {
        /** A step takes 100 ms. */
        public static LearnerPlan defaults() {
            return new LearnerPlan(true, Distribution.fixed(100));
        }
    }
}
