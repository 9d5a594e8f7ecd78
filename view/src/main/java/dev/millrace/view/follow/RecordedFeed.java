package dev.millrace.view.follow;

import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.RecordIndexer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads a run that does not go on into an index: the newest steps first, then all of it, from one end to the other. */
final class RecordedFeed {
    private static final int RECORDS = 4000;

    private final RecordedRun run;
    private final IndexFeed feed;
    private final BooleanSupplier stopped;
    private final long newest;

    /** @param stopped asked after each few thousand records, whether to leave the rest for later */
    RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped) {
        this(run, feed, stopped, IndexFeed.NEWEST);
    }

    /** @param newest so many offsets of the training log come first */
    RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped, long newest) {
        this.run = run;
        this.feed = feed;
        this.stopped = stopped;
        this.newest = newest;
    }

    /** @return whether all of it is in */
    boolean read() {
        RunTopics topics = run.topics();
        for (TopicPartition partition : partitions(List.of(topics.trainingLog()))) {
            newest(partition);
        }
        List<String> all = new ArrayList<>(RecordIndexer.newest(topics));
        all.addAll(RecordIndexer.many(topics));
        List<TopicPartition> partitions = partitions(all);
        long end = 0;
        for (TopicPartition partition : partitions) {
            if (stopped.getAsBoolean()) {
                return false;
            }
            RecordedRun.Range range = run.range(partition);
            end += range.end() - range.from();
        }
        long read = 0;
        for (TopicPartition partition : partitions) {
            read(partition, read, end);
            if (stopped.getAsBoolean()) {
                return false; // what is not in has not been noted as being in
            }
            RecordedRun.Range range = run.range(partition);
            read += range.end() - range.from();
        }
        feed.note(new IndexProgress(end, end, true));
        return true;
    }

    private List<TopicPartition> partitions(List<String> topics) {
        return topics.stream().flatMap(topic -> run.partitions(topic).stream()).toList();
    }

    /** So that they are there before anything else of the run is looked at. */
    private void newest(TopicPartition partition) {
        RecordedRun.Range range = run.range(partition);
        long from = Math.max(range.from(), range.end() - newest);
        if (feed.position(partition).orElse(range.from()) >= from) {
            return; // what is behind it comes first anyway
        }
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (RecordCursor cursor = run.read(partition, from)) {
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent();
                    next = cursor.next()) {
                records.add(next.get());
            }
        }
        feed.take(records, false);
    }

    private void read(TopicPartition partition, long before, long end) {
        long begin = run.range(partition).from();
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (RecordCursor cursor = run.read(partition, feed.position(partition).orElse(begin))) {
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent();
                    next = cursor.next()) {
                records.add(next.get());
                if (records.size() == RECORDS) {
                    feed.take(records, true);
                    feed.note(new IndexProgress(before + next.get().offset() - begin, end, false));
                    if (stopped.getAsBoolean()) {
                        return;
                    }
                }
            }
            feed.take(records, true);
        }
    }
}
