package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.AdmissionCounts;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * What trajectories cost to sample, in trajectory-seconds: the time from each one's start to its end, added up.
 *
 * @param secondsEach mean over the newest trajectories of the epoch; empty without one
 * @param underWay samples that were released and are not settled, as admission counts them
 */
record SamplingCost(OptionalDouble secondsEach, long underWay) {
    /** Newest offsets of each partition that the mean is taken over. */
    private static final long NEWEST = 4096;

    /** @param cut without a topic that is gone */
    static SamplingCost read(LogConnection connection, TopicScan scan, ConsistentCut cut) {
        return new SamplingCost(secondsEach(connection, scan, cut), underWay(connection, scan, cut));
    }

    private static OptionalDouble secondsEach(LogConnection connection, TopicScan scan, ConsistentCut cut) {
        String topic = connection.topics().rollouts();
        if (!cut.has(topic)) {
            return OptionalDouble.empty();
        }
        Deserializer<Rollout> rollouts =
                AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        Map<TopicPartition, Long> from = new HashMap<>();
        cut.partitions(topic)
                .forEach(partition -> from.put(
                        partition,
                        Math.max(cut.of(partition).begin(), cut.of(partition).end() - NEWEST)));
        double[] seconds = {0};
        long[] count = {0};
        scan.readWhile(from, cut, record -> {
            try {
                Rollout rollout = rollouts.deserialize(record.topic(), record.value());
                if (rollout != null && connection.run().owns(rollout.getRunId(), rollout.getEpoch())) {
                    seconds[0] += Math.max(0, rollout.getFinishedAtMs() - rollout.getStartedAtMs()) / 1000.0;
                    count[0]++;
                }
            } catch (MalformedRecordException e) {
                // does not belong to the run
            }
            return true;
        });
        return count[0] == 0 ? OptionalDouble.empty() : OptionalDouble.of(seconds[0] / count[0]);
    }

    private static long underWay(LogConnection connection, TopicScan scan, ConsistentCut cut) {
        String topic = connection.topics().admission();
        if (!cut.has(topic)) {
            return 0;
        }
        Deserializer<Admission> entries =
                AvroSerde.of(Admission.class, connection.registry()).deserializer();
        @Nullable AdmissionCounts[] last = {null};
        scan.read(topic, cut, record -> {
            try {
                Admission entry = record.value() == null ? null : entries.deserialize(topic, record.value());
                if (entry != null
                        && entry.getCounts() != null
                        && connection.run().owns(entry.getRunId(), entry.getEpoch())) {
                    last[0] = entry.getCounts();
                }
            } catch (MalformedRecordException e) {
                // does not belong to the run
            }
        });
        AdmissionCounts counts = last[0];
        return counts == null ? 0 : Math.max(0, counts.getReleased() - counts.getConsumed() - counts.getLost());
    }

    OptionalDouble of(long trajectories) {
        if (trajectories == 0) {
            return OptionalDouble.of(0);
        }
        return secondsEach.isEmpty() ? secondsEach : OptionalDouble.of(secondsEach.getAsDouble() * trajectories);
    }

    /**
     * Returns the cost of a new epoch.
     *
     * @param trained number of trajectories in the steps that are given up
     */
    OptionalDouble ofNewEpoch(long trained) {
        return of(trained + underWay);
    }
}
