package dev.millrace.runtime.folder;

import dev.millrace.replay.archive.RecordedRun.Range;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/**
 * Index of a partition's files from their batch headers, read once: last stable offset, aborted transactions, and file
 * positions by offset. Immutable and thread-safe.
 */
final class PartitionFiles {
    /** Distance between remembered positions in a file. */
    private static final int APART_BYTES = 1 << 20;

    private final List<Segment> segments;
    private final List<Place> places = new ArrayList<>();
    /** By producer, transactions that were aborted. */
    private final Map<Long, List<Range>> aborted = new HashMap<>();

    private final Range range;

    /**
     * A batch, by its first offset, and where it is.
     *
     * @param newestMs newest time of the records before it
     */
    record Place(long offset, int segment, int position, long newestMs) {}

    /** @param begin first offset that the broker still answers; files may begin before it */
    PartitionFiles(Path folder, long begin) {
        this.segments = Segment.in(folder);
        Map<Long, Long> open = new HashMap<>();
        long end = segments.isEmpty() ? 0 : segments.get(0).base();
        long from = Math.max(begin, end);
        long newestMs = Long.MIN_VALUE;
        for (int s = 0; s < segments.size(); s++) {
            try (Segment.Batches batches = segments.get(s).open(0)) {
                int remembered = -APART_BYTES;
                while (batches.hasNext()) {
                    FileChannelRecordBatch batch = batches.next();
                    if (batch.position() - remembered >= APART_BYTES) {
                        remembered = batch.position();
                        places.add(new Place(batch.baseOffset(), s, remembered, newestMs));
                    }
                    follow(batch, open);
                    end = batch.lastOffset() + 1;
                    newestMs = Math.max(newestMs, batch.maxTimestamp());
                }
            }
        }
        long stable = open.values().stream().mapToLong(Long::longValue).min().orElse(end);
        this.range = new Range(Math.min(from, stable), Math.max(from, stable));
    }

    private void follow(FileChannelRecordBatch batch, Map<Long, Long> open) {
        if (!batch.isTransactional()) {
            return;
        }
        if (!batch.isControlBatch()) {
            open.putIfAbsent(batch.producerId(), batch.baseOffset());
            return;
        }
        Long first = open.remove(batch.producerId());
        boolean isAbort = ControlRecordType.parse(batch.iterator().next().key()) == ControlRecordType.ABORT;
        if (first != null && isAbort) {
            aborted.computeIfAbsent(batch.producerId(), producer -> new ArrayList<>())
                    .add(new Range(first, batch.baseOffset()));
        }
    }

    /** Offsets up to which every committed record is known. */
    Range range() {
        return range;
    }

    List<Segment> segments() {
        return segments;
    }

    Place before(long offset) {
        int at = Collections.binarySearch(
                places, new Place(offset, 0, 0, 0), (a, b) -> Long.compare(a.offset(), b.offset()));
        int found = at >= 0 ? at : -at - 2;
        return found < 0 ? new Place(range.from(), 0, 0, Long.MIN_VALUE) : places.get(found);
    }

    /** The first offset with a record of this time or a later one, committed or not; empty if there is none. */
    OptionalLong since(long timestampMs) {
        Optional<Place> before =
                places.stream().filter(place -> place.newestMs() < timestampMs).reduce((one, later) -> later);
        for (int s = before.map(Place::segment).orElse(0); s < segments.size(); s++) {
            int position = before.isPresent() && before.get().segment() == s
                    ? before.get().position()
                    : 0;
            try (Segment.Batches batches = segments.get(s).open(position)) {
                while (batches.hasNext()) {
                    FileChannelRecordBatch batch = batches.next();
                    if (batch.maxTimestamp() >= timestampMs) {
                        for (Record record : batch) {
                            if (record.timestamp() >= timestampMs) {
                                return OptionalLong.of(record.offset());
                            }
                        }
                    }
                }
            }
        }
        return OptionalLong.empty();
    }

    /** Returns whether the records of a batch are committed or non-transactional. */
    boolean isCommitted(FileChannelRecordBatch batch) {
        if (batch.isControlBatch()) {
            return false;
        }
        List<Range> given = batch.isTransactional() ? aborted.get(batch.producerId()) : null;
        return given == null
                || given.stream()
                        .noneMatch(range -> batch.baseOffset() >= range.from() && batch.baseOffset() < range.end());
    }
}
