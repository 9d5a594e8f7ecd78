package dev.millrace.replay.archive;

import dev.millrace.log.fetch.RecordFetcher;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads single records from an archive's files; those that lie close together cost one pass over a block. */
final class FileFetcher implements RecordFetcher {
    /** Reading over so many records is cheaper than unpacking a block anew. */
    private static final long READ_OVER = 500;

    private final ArchivedRun run;
    private final Map<TopicPartition, Place> open = new HashMap<>();

    /** A file, and the offset behind the record that was read last. */
    private static final class Place {
        private final FileCursor cursor;
        private long next;

        Place(FileCursor cursor) {
            this.cursor = cursor;
        }
    }

    FileFetcher(ArchivedRun run) {
        this.run = run;
    }

    @Override
    public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
        Place place = open.computeIfAbsent(
                partition, p -> new Place(run.read(p, run.range(p).from())));
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>(offsets.length);
        Optional<ConsumerRecord<byte[], byte[]>> record = Optional.empty();
        for (long offset : offsets) {
            if (record.isPresent() && record.get().offset() > offset) {
                continue; // it is not there
            }
            if (offset < place.next || offset - place.next > READ_OVER) {
                place.cursor.seek(offset);
            }
            do {
                record = place.cursor.next();
            } while (record.isPresent() && record.get().offset() < offset);
            place.next = record.map(r -> r.offset() + 1).orElse(Long.MAX_VALUE);
            if (record.isPresent() && record.get().offset() == offset) {
                found.add(record.get());
            }
        }
        return found;
    }

    @Override
    public void close() {
        open.values().forEach(place -> place.cursor.close());
        open.clear();
    }
}
