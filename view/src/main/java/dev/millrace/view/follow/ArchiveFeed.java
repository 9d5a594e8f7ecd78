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

/** Reads an archive into an index, from one end to the other. */
final class ArchiveFeed {
    private static final int RECORDS = 4000;

    private final RecordedRun archive;
    private final IndexFeed feed;
    private final BooleanSupplier stopped;

    ArchiveFeed(RecordedRun archive, IndexFeed feed, BooleanSupplier stopped) {
        this.archive = archive;
        this.feed = feed;
        this.stopped = stopped;
    }

    void read() {
        List<TopicPartition> all = partitions();
        long end = all.stream()
                .map(archive::range)
                .mapToLong(range -> range.end() - range.from())
                .sum();
        long read = 0;
        for (TopicPartition partition : all) {
            if (stopped.getAsBoolean()) {
                return; // what is not in has not been noted as being in
            }
            read(partition, read, end);
            RecordedRun.Range range = archive.range(partition);
            read += range.end() - range.from();
        }
        feed.note(new IndexProgress(end, end, true));
    }

    private List<TopicPartition> partitions() {
        RunTopics topics = archive.topics();
        List<String> all = new ArrayList<>(RecordIndexer.newest(topics));
        all.addAll(RecordIndexer.many(topics));
        return all.stream().flatMap(topic -> archive.partitions(topic).stream()).toList();
    }

    private void read(TopicPartition partition, long before, long end) {
        long begin = archive.range(partition).from();
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (RecordCursor cursor =
                archive.read(partition, feed.position(partition).orElse(begin))) {
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent() && !stopped.getAsBoolean();
                    next = cursor.next()) {
                records.add(next.get());
                if (records.size() == RECORDS) {
                    feed.take(records, true);
                    feed.note(new IndexProgress(before + next.get().offset() - begin, end, false));
                }
            }
            feed.take(records, true);
        }
    }
}
