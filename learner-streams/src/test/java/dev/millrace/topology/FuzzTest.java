package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.TopologyHarness.header;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.join.JoinConfig;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Records, damaged and not, in random order, until all of them must have left: none may crash the topology, each must
 * be accounted for once. The number of records and the seed are system properties.
 */
class FuzzTest {
    private static final int RECORDS = Integer.getInteger("millrace.fuzz.records", 4_000);
    private static final long SEED = Long.getLong("millrace.fuzz.seed", 1);

    @TempDir
    Path directory;

    private final Random random = new Random(SEED);
    private final RecordMutations mutations = new RecordMutations(random);
    /** What became of the record at each offset of rollouts. */
    private final Map<Long, String> ends = new HashMap<>();
    private final Set<String> joinedIds = new HashSet<>();
    private final Set<String> batchedIds = new HashSet<>();
    private TopologyHarness topology;
    private long rollouts;
    private long scores;
    private long scoresRefused;

    @Test
    void shouldAccountForEveryRecordWhateverItIs() {
        TopologyConfig defaults = TopologyConfig.defaults();
        TopologyConfig config = new TopologyConfig(defaults.ingress(),
            new JoinConfig(60_000, 30_000, 10_000, 20_000, 600_000, 1_000), defaults.corrections(),
            new GroupsConfig(60_000, 2, 10_000, 600_000, GroupsConfig.ZeroVariance.DROP), new BatchConfig(8, 0, BatchConfig.Order.COMPLETION, 0), defaults.runtime());
        try (TopologyHarness opened = new TopologyHarness(config, directory, 60_000)) {
            topology = opened;
            for (int i = 0; i < RECORDS; i++) {
                step();
                if (i % 500 == 0) {
                    drain();
                }
            }
            topology.idle(Duration.ofSeconds(700));
            drain();

            assertThat(topology.meters.get("millrace.pending.rollouts").gauge().value()).as("seed %d", SEED).isZero();
            assertThat(ends).as("seed %d: rollouts accounted for", SEED).hasSize((int) rollouts);
            // what was joined has been batched or has left, but for less than one batch that is ready
            joinedIds.removeAll(batchedIds);
            assertThat(joinedIds.size()).as("seed %d: in no batch", SEED).isLessThan(8 + 8);
            assertThat(scoresRefused).isPositive().isLessThan(scores);
            assertThat(batchedIds).hasSizeGreaterThan(RECORDS / 10);
        }
    }

    private void step() {
        topology.later(Duration.ofMillis(random.nextInt(60)));
        int what = random.nextInt(100);
        if (what < 1) {
            byte[] bytes = new byte[random.nextInt(300)];
            random.nextBytes(bytes);
            topology.pipe(random.nextBoolean() ? TOPICS.trajectories() : TOPICS.policyVersions(), "key", bytes);
        } else if (what < 5) {
            topology.pipe(Samples.version(random.nextInt(6)));
        } else if (what < 6) {
            topology.idle(Duration.ofSeconds(random.nextInt(20)));
        } else {
            pipeSample();
        }
    }

    /** A rollout and its score, each damaged with some probability, or one without the other, or in the wrong order. */
    private void pipeSample() {
        long nth = random.nextInt(10) == 0 ? random.nextInt(RECORDS) : rollouts; // now and then one that was there, or will be
        Rollout rollout = Samples.rollout("g" + nth / 2, (int) nth % 2, 2, 1 + random.nextInt(30), -1f, random.nextInt(6))
            .setReward(random.nextInt(2)).build();
        long offset = rollouts;
        Score score = Samples.score(rollout, offset).build();
        boolean scoreFirst = random.nextInt(10) == 0;
        if (scoreFirst) {
            pipe(score);
        }
        if (random.nextInt(20) == 0) {
            mutations.damageField(rollout);
        }
        pipe(TOPICS.rollouts(), rollout.getGroupId(), topology.bytes(TOPICS.rollouts(), rollout, Rollout.class));
        rollouts++;
        if (!scoreFirst && random.nextInt(10) > 0) {
            if (random.nextInt(10) == 0) {
                mutations.damageField(score);
            }
            pipe(score);
        }
    }

    private void pipe(Score score) {
        pipe(TOPICS.scores(), score.getGroupId(), topology.bytes(TOPICS.scores(), score, Score.class));
        scores++;
    }

    private void pipe(String topic, String key, byte[] value) {
        byte[] bytes = random.nextInt(15) == 0 ? mutations.damageBytes(value) : value;
        byte[] keyBytes = random.nextInt(50) == 0 ? null : key.getBytes(StandardCharsets.UTF_8);
        topology.pipe(topic, keyBytes, random.nextInt(200) == 0 ? null : bytes, new RecordHeaders());
    }

    private void drain() {
        for (Trajectory trajectory : topology.trajectoriesThatCanBeRead()) {
            end(trajectory.getRolloutSource().getOffset(), "trajectory of " + trajectory.getRolloutId());
            joinedIds.add(trajectory.getRolloutId());
        }
        for (Outcome outcome : topology.outcomes()) {
            if (outcome.getStage().equals("groups")) {
                assertThat(joinedIds.remove(outcome.getRolloutId())).as("%s leaves once", outcome.getRolloutId()).isTrue();
            } else if (outcome.getSource().getTopic().equals(TOPICS.rollouts())) {
                end(outcome.getSource().getOffset(), outcome.getReason() + " " + outcome.getRolloutId());
            }
        }
        topology.deadLetters().forEach(dead -> {
            if (header(dead, "source.topic").equals(TOPICS.rollouts())) {
                end(Long.parseLong(header(dead, "source.offset")), "dead letter: " + header(dead, "reason"));
            } else if (header(dead, "source.topic").equals(TOPICS.scores())) {
                scoresRefused++;
            }
        });
        for (LearnerBatch batch : topology.batches()) {
            batch.getEntries().forEach(entry ->
                assertThat(batchedIds.add(entry.getRolloutId())).as("%s is batched once", entry.getRolloutId()).isTrue());
        }
    }

    private void end(long offset, String what) {
        String before = ends.put(offset, what);
        assertThat(before).as("seed %d: rollout record %d ends once, now as %s", SEED, offset, what).isNull();
    }
}
