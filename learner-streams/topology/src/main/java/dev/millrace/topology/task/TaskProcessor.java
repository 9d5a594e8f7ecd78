package dev.millrace.topology.task;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.state.Journal;
import dev.millrace.topology.state.Observation;
import dev.millrace.topology.state.SeenHeader;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Runs a task inside the stream engine: hands it what comes and the time that passes, keeps its journal, and forwards
 * what it decides with what it saw.
 */
final class TaskProcessor<A extends Observation> extends ContextualProcessor<Object, A, Object, Object> {
    private static final Duration TICK = Duration.ofSeconds(1);

    private final TaskFactory<A> factory;
    private final String journalStore;
    private final CanonicalSettings settings;
    private final Map<String, String> nodes;
    private final WaitBoard board;
    private final PromptCommit promptCommit;

    private Journal journal;
    private IdleTime idleTime;
    private DecisionTask<A> task;

    TaskProcessor(
            TaskFactory<A> factory,
            String journalStore,
            CanonicalSettings settings,
            Map<String, String> nodes,
            WaitBoard board,
            PromptCommit promptCommit) {
        this.factory = factory;
        this.journalStore = journalStore;
        this.settings = settings;
        this.nodes = nodes;
        this.board = board;
        this.promptCommit = promptCommit;
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
        super.init(context);
        journal = new Journal(
                context.getStateStore(journalStore),
                factory.name(context.taskId().partition()),
                settings);
        idleTime = new IdleTime(factory.maxGapMs(), context.currentSystemTimeMs());
        task = factory.open(context.taskId().partition(), context::getStateStore, this::forward);
        context.schedule(TICK, PunctuationType.WALL_CLOCK_TIME, this::tick);
    }

    @Override
    public void process(Record<Object, A> record) {
        idleTime.arrived();
        journal.arrived(record.value());
        task.take(record.value(), record.timestamp());
        if (promptCommit.isDue(context().currentSystemTimeMs() - record.timestamp())) {
            context().commit();
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
        promptCommit.made(decision.topic());
        context()
                .forward(
                        new Record<>(decision.key(), decision.value(), context().currentSystemTimeMs(), headers),
                        nodes.get(decision.topic()));
    }

    /** The journal's name says which kind of task it is. */
    private String place() {
        return journalStore + "/" + context().taskId();
    }

    @Override
    public void close() {
        if (task != null) {
            board.remove(place());
            task.close();
        }
    }
}
