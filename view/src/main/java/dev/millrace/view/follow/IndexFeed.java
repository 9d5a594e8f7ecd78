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

/** Indexes records that a thread has read, and notifies listeners. */
final class IndexFeed {
    /** Newest offsets of the training log, indexed first. */
    static final long NEWEST = 400;

    private final RunIndex index;
    private final RecordIndexer indexer;
    private final Events events;
    private final Consumer<IndexProgress> progress;

    IndexFeed(RunIndex index, RecordIndexer indexer, Events events, Consumer<IndexProgress> progress) {
        this.index = index;
        this.indexer = indexer;
        this.events = events;
        this.progress = progress;
    }

    Optional<Long> position(TopicPartition partition) {
        return RecordIndexer.position(index, partition.topic(), partition.partition());
    }

    /**
     * Indexes the records and clears the list.
     *
     * @param positions whether everything before them is indexed
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

    void note(IndexProgress now) {
        progress.accept(now);
    }
}
