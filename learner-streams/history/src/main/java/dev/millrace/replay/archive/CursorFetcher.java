package dev.millrace.replay.archive;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.RecordCursor.SeekingCursor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads single records by cursors over files; close ones in one pass. Confined to one thread; keeps each used
 * partition's file open until closed.
 */
public final class CursorFetcher implements RecordFetcher {
    /** Up to this many records, skipping is cheaper than a seek and decompression. */
    private static final long READ_OVER = 500;

    private final Opening opening;
    private final Map<TopicPartition, Place> open = new HashMap<>();

    @FunctionalInterface
    public interface Opening {
        SeekingCursor read(TopicPartition partition, long from);
    }

    /** A file, and the offset after the last record read. */
    private static final class Place {
        private final SeekingCursor cursor;
        private long next;

        Place(SeekingCursor cursor, long next) {
            this.cursor = cursor;
            this.next = next;
        }
    }

    public CursorFetcher(Opening opening) {
        this.opening = opening;
    }

    @Override
    public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
        if (offsets.length == 0) {
            return List.of();
        }
        Place place =
                open.computeIfAbsent(partition, unread -> new Place(opening.read(unread, offsets[0]), offsets[0]));
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
