package dev.millrace.replay;

import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;

/** Rewards on a topic, in the format of {@code rewards}; the first per rollout counts, as in a run. */
public final class RewardTopic implements Verifier {
    private final String topic;
    private final Map<String, Reward> rewards = new HashMap<>();

    private RewardTopic(String topic) {
        this.topic = topic;
    }

    /**
     * @param name with or without the run's prefix
     * @throws ArchiveException if the topic is missing or holds other records
     */
    public static RewardTopic read(RecordedRun run, String name) {
        String prefixed = run.topics().prefix() + name;
        String topic = isThere(run, name) || !isThere(run, prefixed) ? name : prefixed;
        if (run.partitions(topic).isEmpty()) {
            throw new ArchiveException("--rewards topic:" + name + " names a topic that does not exist: neither " + name
                    + " nor " + prefixed + " is on the run's cluster or in its archive");
        }
        RewardTopic read = new RewardTopic(topic);
        Deserializer<Reward> deserializer =
                AvroSerde.of(Reward.class, run.registry()).deserializer();
        run.forEach(topic, record -> read.add(record, deserializer, run));
        return read;
    }

    private static boolean isThere(RecordedRun run, String topic) {
        return !run.partitions(topic).isEmpty() || run instanceof LiveRun live && live.alsoRead(topic);
    }

    private void add(ConsumerRecord<byte[], byte[]> record, Deserializer<Reward> deserializer, RecordedRun run) {
        Reward reward;
        try {
            reward = deserializer.deserialize(record.topic(), record.value());
        } catch (MalformedRecordException e) {
            throw new ArchiveException(
                    "--rewards topic:" + topic + " has a record that is not a reward at partition " + record.partition()
                            + ", offset " + record.offset() + ": " + e.getMessage(),
                    e);
        }
        if (reward != null && run.run().owns(reward.getRunId(), reward.getEpoch())) {
            rewards.putIfAbsent(reward.getRolloutId(), reward);
        }
    }

    @Override
    public Verdict verify(Trajectory rollout) {
        Reward reward = rewards.get(rollout.getRolloutId());
        String lacking = reward == null
                ? "no reward"
                : reward.getUnavailable() != null
                        ? "no reward, unavailable (" + reward.getUnavailable() + "),"
                        : !Double.isFinite(reward.getReward()) ? "the reward " + reward.getReward() : "";
        if (reward == null || !lacking.isEmpty()) {
            throw new ArchiveException("--rewards topic:" + topic + " has " + lacking + " for rollout "
                    + rollout.getRolloutId() + "; give one for each rollout of the batches that are replayed");
        }
        return new Verdict(reward.getReward(), reward.getRewardComponents());
    }
}
