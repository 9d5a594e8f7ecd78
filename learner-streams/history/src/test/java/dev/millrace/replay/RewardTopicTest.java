package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class RewardTopicTest {
    private final InMemorySchemaRegistry registry = new InMemorySchemaRegistry();
    private final MemoryRun run = new MemoryRun(Samples.RUN, Samples.TOPICS, registry);
    private long next;

    @Test
    void shouldGiveTheFirstRewardOfEachRolloutOfTheRun() {
        put("g/0", 2.5, null, Samples.RUN.epoch());
        put("g/0", 1, null, Samples.RUN.epoch());
        put("g/1", 7, null, Samples.RUN.epoch() - 1);
        RewardTopic rewards = RewardTopic.read(run, "rewards"); // the prefix may be left out
        assertThat(rewards.verify(rollout("g/0"))).isEqualTo(new Verdict(2.5, Map.of("style", 0.5)));
        assertThatThrownBy(() -> rewards.verify(rollout("g/1")))
                .isInstanceOf(ArchiveException.class)
                .hasMessage(
                        "--rewards topic:test.rewards has no reward for rollout g/1; give one for each rollout of the"
                                + " batches that are replayed");
    }

    @Test
    void shouldRefuseWhatIsNoReward() {
        put("g/0", 0, "the judge gave up", Samples.RUN.epoch());
        put("g/1", Double.NaN, null, Samples.RUN.epoch());
        RewardTopic rewards = RewardTopic.read(run, Samples.TOPICS.rewards());
        assertThatThrownBy(() -> rewards.verify(rollout("g/0"))).hasMessageContaining("(the judge gave up)");
        assertThatThrownBy(() -> rewards.verify(rollout("g/1")))
                .hasMessageContaining("has the reward NaN for rollout g/1");
        assertThatThrownBy(() -> RewardTopic.read(run, "verdicts"))
                .hasMessage("--rewards topic:verdicts names a topic that does not exist: neither verdicts nor"
                        + " test.verdicts is on"
                        + " the run's cluster or in its archive");
        record(new byte[] {1, 2, 3});
        assertThatThrownBy(() -> RewardTopic.read(run, "rewards"))
                .hasMessageStartingWith(
                        "--rewards topic:test.rewards has a record that is not a reward at partition 0, offset 2: ");
    }

    private static Trajectory rollout(String id) {
        return Trajectory.newBuilder(new SyntheticRollouts(1).next())
                .setRolloutId(id)
                .build();
    }

    private void put(String rollout, double reward, @Nullable String unavailable, int epoch) {
        record(AvroSerde.of(Reward.class, registry)
                .serializer()
                .serialize(
                        Samples.TOPICS.rewards(),
                        Reward.newBuilder()
                                .setRunId(Samples.RUN.runId())
                                .setEpoch(epoch)
                                .setRolloutId(rollout)
                                .setGroupId("g")
                                .setRewarderId("a test")
                                .setRolloutSource(new LogCoordinates("rollouts", 0, 0L))
                                .setReward(reward)
                                .setRewardComponents(Map.of("style", 0.5))
                                .setUnavailable(unavailable)
                                .setScoredAtMs(0)
                                .build()));
    }

    private void record(byte[] value) {
        run.put(new ConsumerRecord<>(Samples.TOPICS.rewards(), 0, next++, "g".getBytes(StandardCharsets.UTF_8), value));
    }
}
