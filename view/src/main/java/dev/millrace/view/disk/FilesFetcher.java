package dev.millrace.view.disk;

import dev.millrace.log.fetch.RecordFetcher;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads single records from a partition's files; those that lie close together in one pass. */
final class FilesFetcher implements RecordFetcher {
    /** Reading over so many records is cheaper than looking for the place anew. */
    private static final long READ_OVER = 500;

    private final BrokerFiles files;

    FilesFetcher(BrokerFiles files) {
        this.files = files;
    }

    @Override
    public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>(offsets.length);
        for (int begin = 0, end; begin < offsets.length; begin = end) {
            end = begin + 1;
            while (end < offsets.length && offsets[end] - offsets[end - 1] <= READ_OVER) {
                end++;
            }
            take(partition, offsets, begin, end, found);
        }
        return found;
    }

    private void take(
            TopicPartition partition, long[] offsets, int begin, int end, List<ConsumerRecord<byte[], byte[]>> found) {
        try (FilesCursor cursor = new FilesCursor(partition, files.of(partition), offsets[begin])) {
            int wanted = begin;
            for (Optional<ConsumerRecord<byte[], byte[]>> record = cursor.next();
                    record.isPresent() && wanted < end;
                    record = cursor.next()) {
                while (wanted < end && offsets[wanted] < record.get().offset()) {
                    wanted++; // it is not there
                }
                if (wanted < end && offsets[wanted] == record.get().offset()) {
                    found.add(record.get());
                    wanted++;
                }
                if (wanted == end) {
                    return;
                }
            }
        }
    }

    @Override
    public void close() {
        // each look opens and closes its files
    }
}
