package dev.millrace.view.follow;

import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.IndexProgress;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Puts what one thread has read into a run's index, and tells those who look what is new. */
final class IndexFeed {
    /** Of the training log, so many of the newest offsets come before all others. */
    static final long NEWEST = 400;

    private final RunIndex index;
    private final RecordIndexer indexer;
    private final Events events;
    private final Consumer<IndexProgress> progress;

    /** @param progress is told how far the index is */
    IndexFeed(RunIndex index, RecordIndexer indexer, Events events, Consumer<IndexProgress> progress) {
        this.index = index;
        this.indexer = indexer;
        this.events = events;
        this.progress = progress;
    }

    /** Where to read on from; empty for the beginning. */
    Optional<Long> position(TopicPartition partition) {
        return RecordIndexer.position(index, partition.topic(), partition.partition());
    }

    /**
     * Puts records in, and empties the list.
     *
     * @param positions whether everything before them is in
     */
    void take(List<ConsumerRecord<byte[], byte[]>> records, boolean positions) {
        if (records.isEmpty()) {
            return;
        }
        RecordIndexer.Taken taken = indexer.take(index, records, positions);
        records.clear();
        if (taken.steps()) {
            events.tell("steps", "{}");
        }
        if (taken.letters()) {
            events.tell("state", "{}");
        }
    }

    /** The index is so far. */
    void note(IndexProgress now) {
        progress.accept(now);
    }
}
