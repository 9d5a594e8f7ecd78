package dev.millrace.topology.task;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.state.Journal;
import dev.millrace.topology.state.Observation;
import dev.millrace.topology.state.SeenHeader;
import dev.millrace.topology.state.StateStores;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.jspecify.annotations.Nullable;

/** Puts tasks of one kind, with their stores and journals, into a topology. */
public final class TaskSupplier<A extends Observation> implements ProcessorSupplier<Object, A, Object, Object> {
    private static final Duration TICK = Duration.ofSeconds(1);
    private final TaskFactory<A> factory;
    private final String journalStore;
    private final CanonicalSettings settings;
    private final Map<String, String> nodes;
    private final StateStores.Kind kind;
    private final WaitBoard board;
    private final ThreadLocal<PromptCommit> commits;

    /**
     * @param journal name of the journal's store
     * @param settings all settings that the tasks' decisions depend on
     * @param nodes by topic: the node that writes to it
     * @param board where each task says every second what it waits for
     * @param commits of each stream thread, shared by the tasks of all kinds
     */
    public TaskSupplier(
            TaskFactory<A> factory,
            String journal,
            CanonicalSettings settings,
            Map<String, String> nodes,
            StateStores.Kind kind,
            WaitBoard board,
            ThreadLocal<PromptCommit> commits) {
        if (!nodes.keySet().containsAll(factory.outputs())) {
            throw new IllegalArgumentException(
                    "every output needs a node: outputs " + factory.outputs() + ", nodes for " + nodes.keySet());
        }
        this.factory = factory;
        this.journalStore = journal;
        this.settings = settings;
        this.nodes = Map.copyOf(nodes);
        this.kind = kind;
        this.board = board;
        this.commits = commits;
    }

    @Override
    public Processor<Object, A, Object, Object> get() {
        return new TaskProcessor();
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
        Set<StoreBuilder<?>> stores = new HashSet<>();
        factory.stores().forEach(name -> stores.add(StateStores.store(name, kind)));
        stores.add(StateStores.store(journalStore, kind));
        return stores;
    }

    /**
     * Runs a task inside the stream engine: passes arrivals and time to it, keeps its journal, and forwards its
     * decisions with the {@link SeenHeader}.
     */
    private final class TaskProcessor extends ContextualProcessor<Object, A, Object, Object> {
        private Journal journal;
        private IdleTime idleTime;
        private DecisionTask<A> task;
        private @Nullable Cancellable settling;
        private long question;

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            journal = new Journal(
                    context.getStateStore(journalStore),
                    factory.name(context.taskId().partition()),
                    settings);
            idleTime = new IdleTime(factory.maxGapMs(), context.currentSystemTimeMs());
            factory.stores().forEach(name -> StateStores.dropShortLived(context.getStateStore(name)));
            task = factory.opening().open(context.taskId().partition(), context::getStateStore, this::forward);
            context.schedule(TICK, PunctuationType.WALL_CLOCK_TIME, this::tick);
        }

        @Override
        public void process(Record<Object, A> record) {
            idleTime.arrived();
            journal.arrived(record.value());
            task.take(record.value(), record.timestamp());
            long nowMs = context().currentSystemTimeMs();
            PromptCommit commit = commits.get();
            boolean isDue = commit.isDue(nowMs - record.timestamp(), nowMs);
            if (isDue) {
                context().commit();
            }
            if (isDue || commit.beginsToSettle()) {
                ask(commit, nowMs);
            }
        }

        /** For all tasks of the thread. */
        private void ask(PromptCommit commit, long nowMs) {
            stopAsking();
            question = commit.ask();
            settling = context()
                    .schedule(Duration.ofMillis(commit.askInMs(nowMs)), PunctuationType.WALL_CLOCK_TIME, thenMs -> {
                        stopAsking();
                        switch (commit.settle(question, thenMs)) {
                            case COMMIT -> context().commit();
                            case ASK_LATER -> ask(commit, thenMs);
                            case NOTHING -> {}
                        }
                    });
        }

        private void stopAsking() {
            if (settling != null) {
                settling.cancel();
                settling = null;
            }
        }

        private void tick(long wallClockMs) {
            long idleMs = idleTime.elapse(wallClockMs);
            if (idleMs != IdleTime.BUSY) {
                journal.idled(idleMs, wallClockMs);
                if (task.idle(idleMs, wallClockMs)) {
                    journal.changed();
                }
            }
            board.post(place(), task.waits());
        }

        /** What is written today is dated today, because the log deletes by date. */
        private void forward(TaskOutput decision) {
            Headers headers = new RecordHeaders(decision.headers());
            headers.remove(SeenHeader.HEADER); // of a dead letter that was redriven and is refused again
            headers.add(SeenHeader.HEADER, journal.seen(task.nowMs()));
            long nowMs = context().currentSystemTimeMs();
            commits.get()
                    .made(factory.awaited().filter(decision.topic()::equals).isPresent(), nowMs);
            context()
                    .forward(
                            new Record<>(decision.key(), decision.value(), nowMs, headers),
                            nodes.get(decision.topic()));
        }

        /** The journal's name says which kind of task it is. */
        private String place() {
            return journalStore + "/" + context().taskId();
        }

        @Override
        public void close() {
            if (settling != null) {
                stopAsking();
                commits.get().stopSettling();
            }
            if (task != null) {
                board.remove(place());
                task.close();
            }
        }
    }

    /**
     * How long nothing has arrived, by the wall clock.
     *
     * <p>Looked at every second or so; a second in which something arrived counts nothing, since the records' own
     * timestamps move the task's clock then. Confined to one task.
     */
    static final class IdleTime {
        /** Something arrived since the last look. */
        static final long BUSY = -1;

        private final long maxGapMs;
        private long lastLookMs;
        private boolean isBusy;

        /** @param maxGapMs longest time between two looks that counts; longer, and the machine slept */
        IdleTime(long maxGapMs, long wallClockMs) {
            this.maxGapMs = maxGapMs;
            this.lastLookMs = wallClockMs;
        }

        void arrived() {
            isBusy = true;
        }

        /** The time since the last look as far as it counts, or {@link #BUSY}. */
        long elapse(long wallClockMs) {
            long idle = isBusy ? BUSY : Math.min(Math.max(0, wallClockMs - lastLookMs), maxGapMs);
            lastLookMs = wallClockMs;
            isBusy = false;
            return idle;
        }
    }
}
