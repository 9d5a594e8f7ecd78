package dev.millrace.replay;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

public final class BatchTrajectories {
    private BatchTrajectories() {}

    /**
     * The trajectories of a recorded batch, one per entry.
     *
     * @throws ArchiveException naming the first that is missing or another
     */
    public static List<Trajectory> of(RecordedRun run, LearnerBatch batch, RecordFetcher fetcher) {
        Map<Integer, TreeSet<Long>> wanted = new TreeMap<>();
        batch.getEntries()
                .forEach(entry -> wanted.computeIfAbsent(entry.getPartition(), p -> new TreeSet<>())
                        .add(entry.getOffset()));
        var deserializer = AvroSerde.of(Trajectory.class, run.registry()).deserializer();
        Map<String, Trajectory> found = new HashMap<>();
        wanted.forEach((partition, offsets) -> {
            long[] sorted = offsets.stream().mapToLong(Long::longValue).toArray();
            for (ConsumerRecord<byte[], byte[]> record :
                    fetcher.fetch(new TopicPartition(run.topics().trajectories(), partition), sorted)) {
                found.put(partition + "@" + record.offset(), deserializer.deserialize(record.topic(), record.value()));
            }
        });
        List<Trajectory> trajectories = new ArrayList<>(batch.getEntries().size());
        for (BatchEntry entry : batch.getEntries()) {
            Trajectory trajectory = found.get(entry.getPartition() + "@" + entry.getOffset());
            if (trajectory == null || !trajectory.getRolloutId().equals(entry.getRolloutId())) {
                throw missing(
                        run.topics().trajectories(),
                        batch,
                        entry,
                        trajectory == null ? "the log no longer has it" : "another lies there");
            }
            trajectories.add(trajectory);
        }
        return trajectories;
    }

    static ArchiveException missing(String topic, LearnerBatch batch, BatchEntry entry, String why) {
        return new ArchiveException("batch " + batch.getBatchId() + " names the trajectory of " + entry.getRolloutId()
                + " at " + topic + "-" + entry.getPartition() + "@" + entry.getOffset() + ", and " + why
                + "; choose a later range, or replay an archive that was exported in time");
    }
}
