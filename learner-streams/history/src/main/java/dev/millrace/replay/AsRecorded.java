package dev.millrace.replay;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.replay.InputReader.Taken;
import dev.millrace.replay.ReplayDifference.ReplayDifferenceException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.Fingerprint;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.SettingDifference;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologySettings;
import dev.millrace.topology.TopologyTasks;
import dev.millrace.topology.TopologyTasks.Input;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.StarvedArrival;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.ingress.VersionDeletion;
import dev.millrace.topology.state.Observation;
import dev.millrace.topology.state.SeenHeader;
import dev.millrace.topology.state.TaskEvent;
import dev.millrace.topology.task.DecisionTask;
import dev.millrace.topology.task.TaskFactory;
import dev.millrace.topology.task.TaskOutput;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Replays every task of a run's topology and compares the bytes.
 *
 * <p>Tasks read recorded input topics, not each other's replays, so they run in parallel with one result. Memory is
 * that of the live tasks.
 */
public final class AsRecorded {
    private final RecordedRun run;
    private final TopologyTasks tasks;
    private final RecordComparison comparison;
    private final LongAdder progress = new LongAdder();

    public AsRecorded(RecordedRun run, TopologyConfig config, Algorithm algorithm, int maxValueBytes) {
        this.run = run;
        this.tasks = new TopologyTasks(
                config,
                algorithm,
                new RunContext(
                        run.run(),
                        run.lineage(),
                        run.topics(),
                        run.registry(),
                        run::fetcher,
                        maxValueBytes,
                        new TopologyMeters(new SimpleMeterRegistry())));
        RunTopics topics = run.topics();
        this.comparison = new RecordComparison(
                run.registry(),
                Map.of(
                        topics.trajectories(),
                        Trajectory.class,
                        topics.outcomes(),
                        Outcome.class,
                        topics.batches(),
                        LearnerBatch.class));
    }

    public long passed() {
        return progress.sum();
    }

    public long toPass() {
        long sum = 0;
        for (String topic : inputTopics()) {
            for (TopicPartition partition : run.partitions(topic)) {
                sum += run.range(partition).end() - run.range(partition).from();
            }
        }
        return sum;
    }

    private List<String> inputTopics() {
        List<String> topics = new ArrayList<>();
        tasks.joinInputs().forEach(input -> topics.add(input.topic()));
        tasks.assemblyInputs().forEach(input -> topics.add(input.topic()));
        return topics;
    }

    public List<TaskVerdict> replay(int threads) throws InterruptedException {
        List<Callable<TaskVerdict>> all = new ArrayList<>();
        for (TopicPartition partition : run.partitions(run.topics().rollouts())) {
            all.add(replayOf(tasks.join(), tasks.joinInputs(), AsRecorded::nothingIsTold, partition.partition()));
        }
        for (TopicPartition partition : run.partitions(run.topics().trajectories())) {
            all.add(replayOf(tasks.assembly(), tasks.assemblyInputs(), AsRecorded::told, partition.partition()));
        }
        ExecutorService workers = Executors.newFixedThreadPool(threads, runnable -> new Thread(runnable, "replay"));
        try {
            List<TaskVerdict> verdicts = new ArrayList<>();
            for (Future<TaskVerdict> verdict : workers.invokeAll(all)) {
                verdicts.add(verdict.get());
            }
            return verdicts;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        } finally {
            workers.shutdownNow();
        }
    }

    private <A extends Observation> Callable<TaskVerdict> replayOf(
            TaskFactory<A> factory,
            List<TopologyTasks.Input<A>> inputs,
            java.util.function.Function<TaskEvent.Told, Taken<A>> told,
            int partition) {
        return () -> new TaskReplay<>(factory, inputs, told, partition).run();
    }

    /** A task's store, used without the engine, which alone would open it. */
    private static KeyValueStore<Bytes, byte[]> store(String name) {
        return Stores.inMemoryKeyValueStore(name).get();
    }

    private static <A> Taken<A> nothingIsTold(TaskEvent.Told told) {
        throw new TaskReplay.UnprovableReplayException(
                "a header names input " + told.input() + ", which the join does not have");
    }

    private static Taken<AssemblyArrival> told(TaskEvent.Told told) {
        if (told.input() == StarvedArrival.INPUT) {
            StarvedArrival starved = StarvedArrival.of(told.facts());
            return new Taken<>(starved, starved.timestampMs());
        }
        AssemblyArrival version = VersionArrival.of(told.facts());
        return new Taken<>(
                version,
                version instanceof VersionArrival published
                        ? published.timestampMs()
                        : ((VersionDeletion) version).timestampMs());
    }

    /**
     * Replays one task over its inputs in the order shown by its recorded output, and compares the output.
     *
     * <p>Before each recorded record the task receives its events: arrivals, idle time, a restart on the same stores. It
     * must then make exactly this record, and the following ones that the run made from the same event. Holds the task's
     * state and one record per partition; single-threaded, used once.
     */
    private final class TaskReplay<A extends Observation> {
        private static final int NAMED_DIFFERENCES = 12;

        private final TaskFactory<A> factory;
        private final List<Input<A>> inputs;
        private final Function<TaskEvent.Told, Taken<A>> told;
        private final int partition;
        private final String name;

        private final Map<String, KeyValueStore<Bytes, byte[]>> stores = new HashMap<>();
        private final Map<String, Long> same = new TreeMap<>();
        private final Map<Integer, InputReader<A>> readers = new TreeMap<>();

        /** Settings carried by the run's records so far. */
        private final Map<Fingerprint, CanonicalSettings> recorded = new HashMap<>();

        private OutputReader outputs;
        private DecisionTask<A> task;
        private long number;
        private long taken;
        private int beginnings;
        /** The record in progress; decisions before its last event are too early. */
        private OutputReader.Output current;

        private boolean isLastEvent;

        /**
         * @param told maps a journal entry to an arrival
         */
        @SuppressWarnings("NullAway.Init") // run() opens the outputs and the task before their first use
        TaskReplay(
                TaskFactory<A> factory, List<Input<A>> inputs, Function<TaskEvent.Told, Taken<A>> told, int partition) {
            this.factory = factory;
            this.inputs = inputs;
            this.told = told;
            this.partition = partition;
            this.name = factory.name(partition);
        }

        TaskVerdict run() {
            Optional<ReplayDifference> difference = Optional.empty();
            Optional<String> gap = Optional.empty();
            try {
                open();
                while (outputs.peek().isPresent()) {
                    replay(outputs.peek().get());
                }
                readers.values().forEach(InputReader::compareRestOfLetters);
            } catch (ReplayDifferenceException e) {
                difference = Optional.of(e.difference());
            } catch (UnprovableReplayException e) {
                gap = Optional.of(String.valueOf(e.getMessage()));
            } finally {
                close();
            }
            long letters = readers.values().stream()
                    .mapToLong(InputReader::lettersCompared)
                    .sum();
            if (letters > 0) {
                same.merge(run.topics().deadLetters(), letters, Long::sum);
            }
            return new TaskVerdict(name, same, taken, beginnings, difference, gap);
        }

        private void open() {
            outputs = new OutputReader(run, name, factory.outputs());
            for (Input<A> input : inputs) {
                TopicPartition source = new TopicPartition(input.topic(), partition);
                boolean isNeeded = !Set.of(
                                run.topics().policyVersions(), run.topics().trainingLog())
                        .contains(input.topic()); // the journal records their contents
                long beginning = run.lineage().beginning(source.topic(), source.partition());
                long lost = run.range(source).from() - beginning;
                if (isNeeded && lost > 0 && outputs.peek().isPresent()) {
                    throw new UnprovableReplayException(
                            "the log no longer holds the first " + lost + " records of " + source
                                    + (beginning == 0 ? "" : " since the epoch began at offset " + beginning)
                                    + "; a run can be replayed as recorded only from its first record");
                }
                readers.put(input.number(), new InputReader<>(run, input, source, comparison, progress));
            }
        }

        private void replay(OutputReader.Output output) {
            if (output.seen().number() != number) {
                throw new ReplayDifferenceException(new ReplayDifference(
                        name,
                        "record number " + number,
                        "",
                        "none; the next is number " + output.seen().number() + " at " + output.place(),
                        "did not search for it"));
            }
            current = output;
            output.seen().settings().forEach(each -> recorded.put(each.fingerprint(), each));
            List<TaskEvent> events = output.seen().since();
            for (int i = 0; i < events.size(); i++) {
                happen(events.get(i), i == events.size() - 1);
            }
            if (outputs.peek().filter(output::equals).isPresent()) {
                throw new ReplayDifferenceException(
                        new ReplayDifference(name, described(output), "", "a record", "none"));
            }
        }

        private void happen(TaskEvent event, boolean isLast) {
            isLastEvent = false;
            if (event instanceof TaskEvent.Arrivals arrivals) {
                InputReader<A> reader = reader(arrivals.input());
                for (long i = 1; i <= arrivals.count(); i++) {
                    isLastEvent = isLast && i == arrivals.count();
                    Taken<A> next = reader.next()
                            .orElseThrow(() -> new UnprovableReplayException(reader.partition() + " ends before the"
                                    + " inputs of "
                                    + described(current) + ": it was written after offset "
                                    + (current.seen().positions().get(arrivals.input()) - 1) + " had been read"));
                    take(next, isLastEvent ? arrivals.input() : -1);
                }
            } else if (event instanceof TaskEvent.Told fact) {
                isLastEvent = isLast;
                take(told.apply(fact), -1);
            } else if (event instanceof TaskEvent.Idled idled) {
                isLastEvent = isLast;
                task.idle(idled.countedMs(), idled.wallClockMs());
            } else if (event instanceof TaskEvent.Began began) {
                requireSame(began.settings());
                begin();
            } else if (event instanceof TaskEvent.BeganAgain) {
                begin();
            } else {
                throw new UnprovableReplayException("too many events happened before " + described(current)
                        + " without a record that the header overflowed");
            }
        }

        private InputReader<A> reader(int input) {
            InputReader<A> reader = readers.get(input);
            if (reader == null) {
                throw new UnprovableReplayException(described(current) + " was written after records of input " + input
                        + " were read, which no task reads under these settings");
            }
            return reader;
        }

        /** Settings of an unknown format cannot be compared; the output must still match byte for byte. */
        private void requireSame(Fingerprint began) {
            if (began.equals(Fingerprint.UNKNOWN)
                    || began.equals(tasks.settings().fingerprint())) {
                return;
            }
            String from = "from " + described(current) + " on, the run used other settings than these";
            CanonicalSettings there = recorded.get(began);
            if (there == null) {
                throw new UnprovableReplayException(from + " (their fingerprint is " + began + ", of these "
                        + tasks.settings().fingerprint() + "), and no record of " + name + " carries their text");
            }
            List<SettingDifference> differences;
            try {
                differences = TopologySettings.FORMS.differences(there, tasks.settings());
            } catch (IllegalArgumentException e) {
                throw new UnprovableReplayException("the settings of the run from " + described(current)
                        + " on cannot be compared: " + e.getMessage());
            }
            if (!differences.isEmpty()) {
                throw new UnprovableReplayException(
                        from + ": " + settings(differences) + "; give the run's own configuration");
            }
        }

        private static String settings(List<SettingDifference> differences) {
            String named = differences.stream()
                    .limit(NAMED_DIFFERENCES)
                    .map(SettingDifference::toString)
                    .collect(Collectors.joining(", "));
            return differences.size() <= NAMED_DIFFERENCES
                    ? named
                    : named + ", and " + (differences.size() - NAMED_DIFFERENCES) + " more";
        }

        private void begin() {
            if (task != null) {
                task.close();
            }
            task = factory.opening()
                    .open(partition, store -> stores.computeIfAbsent(store, AsRecorded::store), this::compare);
            beginnings++;
        }

        private void take(Taken<A> next, int lastOfInput) {
            taken++;
            if (lastOfInput >= 0) {
                long position = current.seen().positions().get(lastOfInput);
                if (next.arrival().offset() + 1 != position) {
                    throw new UnprovableReplayException("when " + described(current) + " was made, "
                            + reader(lastOfInput).partition()
                            + " was read up to offset " + (position - 1)
                            + "; counting its records leads to offset "
                            + next.arrival().offset() + ", so records are missing from it");
                }
            }
            task.take(next.arrival(), next.timestampMs());
        }

        private void compare(TaskOutput made) {
            Optional<OutputReader.Output> next = outputs.peek();
            boolean isOfNow = isLastEvent
                    && next.isPresent()
                    && (next.get().equals(current) || next.get().seen().since().isEmpty());
            if (!isOfNow) {
                throw new ReplayDifferenceException(new ReplayDifference(
                        name, "before " + described(next.orElse(current)), "", "no record", "one for " + made.topic()));
            }
            OutputReader.Output recorded = next.get();
            if (recorded.seen().number() != number) {
                throw new ReplayDifferenceException(new ReplayDifference(
                        name,
                        "record number " + number,
                        "",
                        "none; the next is number " + recorded.seen().number() + " at " + recorded.place(),
                        "one for " + made.topic()));
            }
            comparison.compare(recorded.record(), made).ifPresent(where -> {
                throw new ReplayDifferenceException(new ReplayDifference(
                        name, described(recorded), where.field(), where.recorded(), where.replayed()));
            });
            if (recorded.seen().activityMs() != task.nowMs()) {
                throw new ReplayDifferenceException(new ReplayDifference(
                        name,
                        described(recorded),
                        "activity clock",
                        recorded.seen().activityMs() + " ms",
                        task.nowMs() + " ms"));
            }
            same.merge(recorded.record().topic(), 1L, Long::sum);
            number++;
            outputs.pass();
        }

        private static String described(OutputReader.Output output) {
            return output.place() + " (number " + output.seen().number() + ")";
        }

        private void close() {
            if (task != null) {
                task.close();
            }
            readers.values().forEach(InputReader::close);
            if (outputs != null) {
                outputs.close();
            }
        }

        /**
         * One task's records from all its output topics, in order of creation.
         *
         * <p>Each partition has a task's records in order, so one record per partition is held. Every task's replay reads
         * its own cursors and skips other tasks' records. Repeated numbers are copies by another writer and skipped.
         * Confined to one thread.
         */
        static final class OutputReader implements AutoCloseable {

            /** A recorded record with its seen header. */
            record Output(ConsumerRecord<byte[], byte[]> record, SeenHeader seen) {
                String place() {
                    return record.topic() + "-" + record.partition() + "@" + record.offset();
                }
            }

            private static final class Source {
                private final RecordCursor cursor;
                private long lastNumber = -1;

                Source(RecordCursor cursor) {
                    this.cursor = cursor;
                }
            }

            private record Head(Source source, Output output) {}

            private final String task;
            private final List<Source> sources = new ArrayList<>();
            private final PriorityQueue<Head> heads = new PriorityQueue<>(
                    Comparator.comparingLong((Head head) -> head.output().seen().number()));

            OutputReader(RecordedRun run, String task, List<String> topics) {
                this.task = task;
                for (String topic : topics) {
                    for (TopicPartition partition : run.partitions(topic)) {
                        Source source = new Source(run.read(partition, 0));
                        sources.add(source);
                        advance(source);
                    }
                }
            }

            private void advance(Source source) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = source.cursor.next();
                        next.isPresent();
                        next = source.cursor.next()) {
                    if (SeenHeader.isOf(next.get().headers(), task)) {
                        SeenHeader seen = SeenHeader.of(next.get().headers()).orElseThrow();
                        if (seen.number() > source.lastNumber) {
                            source.lastNumber = seen.number();
                            heads.add(new Head(source, new Output(next.get(), seen)));
                            return;
                        }
                    }
                }
            }

            /** Empty at the end. */
            Optional<Output> peek() {
                return Optional.ofNullable(heads.peek()).map(Head::output);
            }

            void pass() {
                advance(heads.remove().source());
            }

            @Override
            public void close() {
                sources.forEach(source -> source.cursor.close());
            }
        }

        /** The record does not show how the task continued; the message names the missing part. */
        static final class UnprovableReplayException extends RuntimeException {
            private static final long serialVersionUID = 1L;

            UnprovableReplayException(String message) {
                super(message, null, false, false);
            }
        }
    }
}
