package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.workloads.PointResult.LagSample;
import dev.millrace.workloads.PointResult.Latency;
import dev.millrace.workloads.PointResult.Limit;
import dev.millrace.workloads.TopicWatch.BatchedRollouts;
import dev.millrace.workloads.topology.Backlog;
import dev.millrace.workloads.topology.Distribution;
import dev.millrace.workloads.topology.InstanceProcess;
import dev.millrace.workloads.topology.LoadException;
import dev.millrace.workloads.topology.OpenLoop;
import dev.millrace.workloads.topology.RunningTopology;
import dev.millrace.workloads.topology.Schedule;
import dev.millrace.workloads.topology.SyntheticRun;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs a workload against its own topology: backlog, topology, warm-up until the first batch, counted window. Does not
 * wait for rollouts in flight at the end.
 */
public final class PointRun {
    private static final double TICK_S = 0.02;
    /** After the warm-up; clients need time to discover each other. */
    private static final Duration FIRST_BATCH_LIMIT = Duration.ofMinutes(3);

    private final Map<String, Object> client;
    private final Workload workload;
    private final String name;
    private final Path scratch;
    private final Map<String, String> settings;
    private final double copyMegabytesPerSecond;

    private final Histogram endToEnd = new Histogram(3);
    private final Histogram added = new Histogram(3);
    private final List<Double> essRatios = new ArrayList<>();
    private long windowFrom = Long.MAX_VALUE;
    private long batchBeforeWindow;
    private long windowRollouts;
    private long windowTokens;
    private long windowTrained;
    private double windowStaleness;
    private long backlogLeft;
    private long drainedNanos;
    private long lastBatchNanos;
    private long longestGapNanos;

    public PointRun(
            Map<String, Object> client,
            Workload workload,
            String name,
            Path scratch,
            Map<String, String> settings,
            double copyMegabytesPerSecond) {
        this.client = client;
        this.workload = workload;
        this.name = name;
        this.scratch = scratch;
        this.settings = settings;
        this.copyMegabytesPerSecond = copyMegabytesPerSecond;
    }

    public PointResult run() throws InterruptedException {
        long firstVersion = workload.rollouts().versionsBehind().most();
        try (SyntheticRun run = new SyntheticRun(
                client,
                name,
                workload.topics(),
                workload.rollouts(),
                workload.seed(),
                workload.topology().runtime().compression())) {
            run.publishVersions(firstVersion, System.currentTimeMillis() - 3_600_000);
            backlogLeft = workload.backlog().rollouts();
            if (backlogLeft > 0) {
                Backlog.publish(run, 0, workload.backlog().rollouts(), firstVersion);
            }
            PointResult result = underLoad(run, firstVersion);
            run.delete();
            return result;
        }
    }

    private PointResult underLoad(SyntheticRun run, long firstVersion) throws InterruptedException {
        double seconds = workload.warmUpSeconds() + FIRST_BATCH_LIMIT.toSeconds() + workload.seconds();
        long group = workload.rollouts().groupSize();
        long count = Math.max(1, Math.round(workload.load().rolloutsPerSecond() * seconds / group)) * group;
        Schedule schedule =
                Schedule.of(workload.load().arrivals(), workload.load().rolloutsPerSecond(), count, workload.seed());
        BatchView view = new BatchView();
        Optional<SyntheticLearner> learner = workload.learner().enabled()
                ? Optional.of(new SyntheticLearner(run, workload.learner().stepMs(), firstVersion, workload.seed()))
                : Optional.empty();
        OpenLoop load = new OpenLoop(
                run,
                workload.load(),
                schedule,
                workload.backlog().rollouts(),
                () -> learner.map(SyntheticLearner::newestVersion).orElse(firstVersion));
        long bytesPerRollout;
        try (Instances instances = Instances.start(workload, run.connection(), name, scratch);
                TopicWatch watch = new TopicWatch(
                        run.connection(),
                        run.connection().topics().batches(),
                        BatchedRollouts.batches(run.connection(), batch -> {
                            see(batch, load, System.nanoTime());
                            view.see(batch);
                            learner.ifPresent(taker -> taker.offer(batch));
                        }));
                LagSampler sampler = new LagSampler(
                        run.connection(),
                        workload.topics().partitions(),
                        view,
                        () -> learner.map(SyntheticLearner::steps).orElse(view.count()));
                ProcessorLoad processors = new ProcessorLoad()) {
            instances.awaitRunning();
            long began = System.nanoTime();
            load.start();
            sampler.start();
            sleepUntil(began + nanos(workload.warmUpSeconds()), load, watch, instances);
            BoundedWait.await(
                    "the first batch at " + workload.load().rolloutsPerSecond() + " rollouts/s",
                    FIRST_BATCH_LIMIT,
                    () -> {
                        requireHealthy(load, watch, instances);
                        return view.count() > 0;
                    },
                    () -> watch.departures().toString());
            openWindow(load);
            processors.begin();
            long windowBegan = System.nanoTime();
            long staleBefore = watch.departures().of(OutcomeReason.STALE);
            double busyBefore = busySeconds(learner);
            long recoveredFrom = 0;
            if (workload.fault().killAfterSeconds() > 0) {
                sleepUntil(windowBegan + nanos(workload.fault().killAfterSeconds()), load, watch, instances);
                synchronized (this) {
                    longestGapNanos = 0;
                }
                recoveredFrom = System.nanoTime();
                instances.killOne();
            }
            sleepUntil(windowBegan + nanos(workload.seconds()), load, watch, instances);
            double windowSeconds = (System.nanoTime() - windowBegan) / 1e9;
            bytesPerRollout = load.bytes() / Math.max(1, load.rolloutsOnLog());
            List<LagSample> lags = sampler.samples();
            Window window = new Window(
                    began,
                    windowSeconds,
                    watch.departures().of(OutcomeReason.STALE) - staleBefore,
                    Math.min(1, (busySeconds(learner) - busyBefore) / windowSeconds),
                    processors.load(),
                    recoveredFrom);
            return result(load, lags, bytesPerRollout, window);
        } finally {
            load.close();
            learner.ifPresent(SyntheticLearner::close);
        }
    }

    private static double busySeconds(Optional<SyntheticLearner> learner) {
        return learner.map(SyntheticLearner::busySeconds).orElse(0.0);
    }

    private static long nanos(double seconds) {
        return Math.round(seconds * 1e9);
    }

    private static void sleepUntil(long nanos, OpenLoop load, TopicWatch watch, Instances instances)
            throws InterruptedException {
        while (System.nanoTime() < nanos) {
            requireHealthy(load, watch, instances);
            Thread.sleep(Math.round(TICK_S * 1e3));
        }
    }

    private static void requireHealthy(OpenLoop load, TopicWatch watch, Instances instances) {
        load.requireHealthy();
        watch.requireWatching();
        instances.requireRunning();
    }

    private synchronized void openWindow(OpenLoop load) {
        windowFrom = System.nanoTime();
        batchBeforeWindow = lastBatchNanos;
        longestGapNanos = 0; // of the window; what the start of everything took says nothing about it
        load.publishDelay().getIntervalHistogram(); // what was recorded in the warm-up is left behind
        load.publishLatency().getIntervalHistogram();
    }

    private synchronized void see(LearnerBatch batch, OpenLoop load, long now) {
        if (lastBatchNanos != 0) {
            longestGapNanos = Math.max(longestGapNanos, now - lastBatchNanos);
        }
        lastBatchNanos = now;
        boolean counted = now >= windowFrom;
        for (BatchEntry entry : batch.getEntries()) {
            long index = BatchedRollouts.index(entry, workload.rollouts().groupSize())
                    - workload.backlog().rollouts();
            if (index < 0) {
                if (--backlogLeft == 0) {
                    drainedNanos = now;
                }
            } else if (counted) {
                endToEnd.recordValue(Math.max(0, now - load.timeline().intended(index)));
                added.recordValue(Math.max(0, now - load.timeline().scoredAt(index)));
            }
            if (counted) {
                windowRollouts++;
                windowTokens += load.tokensOf(index);
            }
        }
        if (counted) {
            windowTrained += batch.getTrainedTokens();
            if (batch.getEssRatio() != null) {
                essRatios.add(batch.getEssRatio());
            }
            windowStaleness += batch.getStalenessMean();
        }
    }

    /**
     * The counted window.
     *
     * @param began nanoseconds, when the load began
     * @param learnerBusy share of its time, 0 to 1
     * @param processorLoad of the whole machine, 0 to 1
     * @param killed nanoseconds, when an instance was killed; 0 if none was
     */
    private record Window(
            long began, double seconds, long stale, double learnerBusy, double processorLoad, long killed) {}

    private synchronized PointResult result(OpenLoop load, List<LagSample> lags, long bytesPerRollout, Window window) {
        double offered = workload.load().rolloutsPerSecond();
        double achieved = windowRollouts / countedSeconds(window.seconds());
        double megabytes = achieved * bytesPerRollout / 1e6;
        Latency delay = Latency.of(load.publishDelay().getIntervalHistogram());
        boolean followed = Knee.Point.of(offered, achieved).followed();
        double staleShare = window.stale() == 0 ? 0 : (double) window.stale() / (window.stale() + windowRollouts);
        boolean waits = workload.topology().batch().maxOutstanding() > 0;
        double[] ess =
                essRatios.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return new PointResult(
                settings,
                new PointResult.Rates(
                        offered,
                        achieved,
                        windowTokens / window.seconds(),
                        megabytes,
                        megabytes / copyMegabytesPerSecond),
                new PointResult.Latencies(
                        delay,
                        Latency.of(load.publishLatency().getIntervalHistogram()),
                        Latency.of(endToEnd),
                        Latency.of(added)),
                new PointResult.Batches(
                        ess.length == 0 ? 0 : ess[ess.length / 2],
                        windowTokens == 0 ? 0 : (double) windowTrained / windowTokens,
                        ess.length == 0 ? 0 : windowStaleness / ess.length,
                        staleShare),
                new PointResult.Use(
                        window.learnerBusy(),
                        window.processorLoad(),
                        load.ownNanosPerRecord() / 1e3,
                        Limit.of(
                                followed,
                                staleShare,
                                waits ? window.learnerBusy() : 0,
                                window.processorLoad(),
                                delay.p99())),
                new PointResult.Recovery(
                        workload.backlog().rollouts() > 0 && drainedNanos != 0
                                ? (drainedNanos - window.began()) / 1e9
                                : -1,
                        Math.max(0, backlogLeft),
                        window.killed() == 0 ? -1 : recovery(lags, (window.killed() - window.began()) / 1e9),
                        window.killed() == 0
                                ? -1
                                : Math.max(longestGapNanos, windowFrom + nanos(window.seconds()) - lastBatchNanos)
                                        / 1e9),
                lags);
    }

    private double countedSeconds(double windowSeconds) {
        long end = windowFrom + nanos(windowSeconds);
        long counted = (end - lastBatchNanos > longestGapNanos ? end : lastBatchNanos) - batchBeforeWindow;
        return windowRollouts == 0 ? windowSeconds : counted / 1e9;
    }

    /** Seconds from the kill until lag is at most its maximum before; -1 if never. */
    private static double recovery(List<LagSample> lags, double killedAtSeconds) {
        long before = lags.stream()
                .filter(lag -> lag.atSeconds() < killedAtSeconds)
                .mapToLong(LagSample::allRecords)
                .max()
                .orElse(0);
        boolean behind = false;
        for (LagSample lag : lags) {
            if (lag.atSeconds() >= killedAtSeconds) {
                behind |= lag.allRecords() > before;
                if (behind && lag.allRecords() <= before) {
                    return lag.atSeconds() - killedAtSeconds;
                }
            }
        }
        return behind || lags.isEmpty() ? -1 : 0;
    }

    /** Samples the lags twice a second on its own thread, until closed. */
    static final class LagSampler implements AutoCloseable {
        private static final long EVERY_MS = 500;

        private final Admin admin;
        private final String group;
        private final List<TopicPartition> partitions = new ArrayList<>();
        private final BatchView batches;
        private final LongSupplier versions;
        private final Map<TopicPartition, PartitionLag> lags = new HashMap<>();
        private final List<LagSample> samples = new ArrayList<>();
        private final Thread thread;
        private long lastNanos;
        private long lastRollouts;

        public LagSampler(LogConnection connection, int partitionCount, BatchView batches, LongSupplier versions) {
            this.admin = Admin.create(connection.admin());
            this.group = connection.group("topology");
            for (int p = 0; p < partitionCount; p++) {
                partitions.add(new TopicPartition(connection.topics().rollouts(), p));
                partitions.add(new TopicPartition(connection.topics().scores(), p));
            }
            partitions.add(new TopicPartition(connection.topics().trajectories(), 0));
            partitions.forEach(partition -> lags.put(partition, new PartitionLag()));
            this.batches = batches;
            this.versions = versions;
            this.thread = new Thread(this::sample, "lag sampler");
            thread.setDaemon(true);
        }

        public void start() {
            thread.start();
        }

        private void sample() {
            long began = System.nanoTime();
            lastNanos = began;
            lastRollouts = batches.rollouts();
            try {
                while (!Thread.currentThread().isInterrupted()) {
                    LagSample sample = take(began);
                    synchronized (samples) {
                        samples.add(sample);
                    }
                    Thread.sleep(EVERY_MS);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // closed
            } catch (ExecutionException e) {
                throw LoadException.of("the lag cannot be asked for", e);
            }
        }

        private LagSample take(long began) throws ExecutionException, InterruptedException {
            Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
            partitions.forEach(partition -> latest.put(partition, OffsetSpec.latest()));
            var committed = admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata()
                    .get();
            var ends = admin.listOffsets(latest).all().get();
            long now = System.nanoTime();
            Map<String, Long> records = new TreeMap<>();
            Map<String, Double> seconds = new TreeMap<>();
            for (TopicPartition partition : partitions) {
                PartitionLag lag = Objects.requireNonNull(lags.get(partition));
                lag.end(now, Objects.requireNonNull(ends.get(partition)).offset());
                lag.committed(
                        committed.get(partition) == null
                                ? 0
                                : committed.get(partition).offset());
                records.put(partition.toString(), lag.records());
                seconds.put(partition.toString(), lag.seconds(now));
            }
            long rollouts = batches.rollouts();
            double rate = now == lastNanos ? 0 : (rollouts - lastRollouts) * 1e9 / (now - lastNanos);
            lastNanos = now;
            lastRollouts = rollouts;
            return new LagSample(
                    (now - began) / 1e9,
                    records,
                    seconds,
                    batches.versionsInFlight(),
                    batches.versionsInQueue(),
                    batches.count() - versions.getAsLong(),
                    rate);
        }

        public List<LagSample> samples() {
            synchronized (samples) {
                return List.copyOf(samples);
            }
        }

        @Override
        public void close() {
            thread.interrupt();
            BoundedWait.join(thread);
            admin.close();
        }
    }

    /** Takes batches in turn, waits for the step time, and publishes the next version. */
    static final class SyntheticLearner implements AutoCloseable {
        private final SyntheticRun run;
        private final Distribution stepMs;
        private final SplittableRandom random;
        private final LinkedBlockingQueue<Long> batches = new LinkedBlockingQueue<>();
        private final AtomicLong newest;
        private final AtomicLong steps = new AtomicLong();
        private final AtomicLong busyNanos = new AtomicLong();
        private volatile long stepBegan;
        private final AtomicReference<RuntimeException> failure = new AtomicReference<>();
        private final Thread thread;

        /** @param firstVersion newest version before the first step */
        public SyntheticLearner(SyntheticRun run, Distribution stepMs, long firstVersion, long seed) {
            this.run = run;
            this.stepMs = stepMs;
            this.random = new SplittableRandom(seed);
            this.newest = new AtomicLong(firstVersion);
            this.thread = new Thread(this::learn, "synthetic learner");
            thread.setDaemon(true);
            thread.start();
        }

        public void offer(LearnerBatch batch) {
            batches.add(batch.getBatchId());
        }

        public long newestVersion() {
            if (failure.get() != null) {
                throw failure.get();
            }
            return newest.get();
        }

        /** Seconds spent on batches, including the step in progress. */
        public double busySeconds() {
            long began = stepBegan;
            return (busyNanos.get() + (began == 0 ? 0 : System.nanoTime() - began)) / 1e9;
        }

        public long steps() {
            return steps.get();
        }

        private void learn() {
            try (Producer<byte[], byte[]> producer = run.producer(0)) {
                while (true) {
                    long batch = batches.take();
                    long began = System.nanoTime();
                    stepBegan = began;
                    Thread.sleep(stepMs.draw(random));
                    long nowMs = System.currentTimeMillis();
                    producer.send(run.record(run.records().version(newest.get() + 1, batch, nowMs), nowMs))
                            .get();
                    newest.incrementAndGet();
                    steps.incrementAndGet();
                    stepBegan = 0;
                    busyNanos.addAndGet(System.nanoTime() - began);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // closed
            } catch (ExecutionException e) {
                failure.set(LoadException.of("a version could not be published", e));
            }
        }

        @Override
        public void close() {
            thread.interrupt();
            BoundedWait.join(thread);
        }
    }

    /** Totals over the visible batches. Written by one thread, read by any. */
    static final class BatchView {
        private static final String STALENESS = "staleness";

        private final AtomicLong count = new AtomicLong();
        private final AtomicLong rollouts = new AtomicLong();
        private volatile double versionsInFlight;
        private volatile double versionsInQueue;

        public void see(LearnerBatch batch) {
            for (StageReport stage : batch.getStages()) {
                if (stage.getStage().equals(STALENESS)) {
                    versionsInFlight = stage.getValues().getOrDefault("in_flight_mean", 0.0);
                    versionsInQueue = stage.getValues().getOrDefault("in_queue_mean", 0.0);
                }
            }
            rollouts.addAndGet(batch.getEntries().size());
            count.incrementAndGet();
        }

        public long count() {
            return count.get();
        }

        public long rollouts() {
            return rollouts.get();
        }

        public double versionsInFlight() {
            return versionsInFlight;
        }

        public double versionsInQueue() {
            return versionsInQueue;
        }
    }

    /**
     * Lag of a reader behind one partition's end, in records and in seconds since the end first passed the committed
     * offset. Confined to one thread.
     */
    static final class PartitionLag {
        private record End(long nanos, long offset) {}

        private final Deque<End> history = new ArrayDeque<>();
        private long end;
        private long committed;

        void end(long nowNanos, long offset) {
            if (history.isEmpty() || offset > end) {
                history.addLast(new End(nowNanos, offset));
                end = offset;
            }
        }

        void committed(long offset) {
            committed = offset;
            while (!history.isEmpty() && history.peekFirst().offset() <= offset) {
                history.removeFirst();
            }
        }

        long records() {
            return Math.max(0, end - committed);
        }

        double seconds(long nowNanos) {
            return history.isEmpty() ? 0 : (nowNanos - history.peekFirst().nanos()) / 1e9;
        }
    }

    /** Instances of a topology under load: in this process, or in their own if one is to be killed. */
    private interface Instances extends AutoCloseable {

        static Instances start(Workload workload, LogConnection connection, String run, Path scratch) {
            return workload.fault().killAfterSeconds() == 0
                    ? new Here(new RunningTopology(
                            workload.topology(),
                            workload.algorithm(),
                            connection,
                            scratch.resolve(run),
                            workload.instances(),
                            workload.exactlyOnce() ? TopologyRunner::new : TopologyRunner::atLeastOnce))
                    : new Apart(workload, connection, run, scratch);
        }

        void awaitRunning() throws InterruptedException;

        void requireRunning();

        void killOne() throws InterruptedException;

        @Override
        void close();

        record Here(RunningTopology topology) implements Instances {
            @Override
            public void awaitRunning() throws InterruptedException {
                topology.awaitAllRunning();
            }

            @Override
            public void requireRunning() {
                topology.requireRunning();
            }

            @Override
            public void killOne() {
                throw new IllegalStateException("an instance in this process cannot be killed");
            }

            @Override
            public void close() {
                topology.close();
            }
        }

        final class Apart implements Instances {
            private static final int HEAP_MEGABYTES = 512;

            private final Workload workload;
            private final LogConnection connection;
            private final String run;
            private final Path scratch;
            private final List<InstanceProcess> processes = new ArrayList<>();
            private int started;

            Apart(Workload workload, LogConnection connection, String run, Path scratch) {
                this.workload = workload;
                this.connection = connection;
                this.run = run;
                this.scratch = scratch;
                for (int i = 0; i < workload.instances(); i++) {
                    processes.add(another("instance-" + i));
                }
            }

            private InstanceProcess another(String id) {
                return InstanceProcess.start(
                        String.valueOf(connection.clientProperties().get("bootstrap.servers")),
                        run,
                        scratch.resolve(run + "-" + started++),
                        id,
                        HEAP_MEGABYTES,
                        new InstanceProcess.Settings(workload.topology(), workload.algorithm(), workload.topics()));
            }

            @Override
            public void awaitRunning() throws InterruptedException {
                for (InstanceProcess process : processes) {
                    process.awaitRunning();
                }
            }

            @Override
            public void requireRunning() {
                if (!processes.stream().allMatch(InstanceProcess::isAlive)) {
                    throw new LoadException(
                            "an instance of the topology ended under load; its log is under " + scratch);
                }
            }

            @Override
            public void killOne() throws InterruptedException {
                processes.get(0).kill();
                processes.set(0, another("instance-0"));
            }

            @Override
            public void close() {
                processes.forEach(InstanceProcess::close);
            }
        }
    }
}
