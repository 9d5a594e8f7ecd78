package dev.millrace.topology.task;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;

/**
 * Inputs with records that have not been read: what is committed lies below the log's end. A hanging transaction, a
 * thread that is stuck and a consumer that is lost look like this.
 */
public final class InputWaits {
    private InputWaits() {}

    /** One for each partition that is behind, with its committed offset as the progress. Thread-safe. */
    public static List<Wait> of(KafkaStreams streams) {
        List<Wait> waits = new ArrayList<>();
        for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
            for (TaskMetadata task : thread.activeTasks()) {
                task.endOffsets()
                        .forEach((partition, end) ->
                                add(waits, partition, task.committedOffsets().getOrDefault(partition, -1L), end));
            }
        }
        return waits;
    }

    private static void add(List<Wait> waits, TopicPartition partition, long committed, long end) {
        if (end > Math.max(0, committed)) {
            waits.add(new Wait(
                    "input " + partition.topic(),
                    partition.partition(),
                    committed,
                    "the log ends at " + end + " and offset " + Math.max(0, committed) + " is the next to be read; is a"
                            + " transaction left open, or a record that cannot be finished?"));
        }
    }
}
