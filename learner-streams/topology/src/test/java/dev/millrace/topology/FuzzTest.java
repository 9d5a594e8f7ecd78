package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.TopologyHarness.header;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.join.JoinConfig;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rollouts and partners of every kind, damaged and not, in random order, until all of them must have left: none may
 * crash the topology, each must be accounted for once. How many records there are at least is the system property
 * {@code millrace.fuzz.records}, the first seed {@code millrace.fuzz.seed}; many are cut into rounds with a topology each.
 */
class FuzzTest {
    private static final Logger LOG = LoggerFactory.getLogger(FuzzTest.class);
    private static final int RECORDS = Integer.getInteger("millrace.fuzz.records", 6_000);
    private static final int ROUND = 50_000;
    /** Batches are not consumed here, so each further one is a version later. */
    private static final Algorithm HOWEVER_OLD =
            Algorithm.defaults().with(a -> a.staleness(new StalenessRules(RECORDS, 0, 0)));

    private static final long SEED = Long.getLong("millrace.fuzz.seed", 1);

    @TempDir
    Path directory;

    private long seed;
    private Random random;
    private RecordMutations mutations;
    /** Outcome of the record at each offset of rollouts. */
    private final Map<Long, String> ends = new HashMap<>();
    /** How often each end was met, over all rounds. */
    private final Map<String, Long> tally = new TreeMap<>();

    private final Set<String> joinedIds = new HashSet<>();
    private final Set<String> batchedIds = new HashSet<>();
    private TopologyHarness topology;
    private int roundRecords;
    private long piped;
    private long rollouts;
    private long partners;
    private long partnersRefused;

    @Test
    void shouldAccountForEveryRecordWhateverItIs() {
        long all = 0;
        for (seed = SEED; all < RECORDS; seed++) {
            roundRecords = (int) Math.min(ROUND, RECORDS - all);
            all += round();
            LOG.info("seed {}: {} records so far", seed, all);
        }
        tally.forEach((end, times) -> LOG.info("{} rollouts: {}", times, end));
        LOG.info("{} records in {} rounds", all, seed - SEED);
        assertThat(tally.keySet()).as("ends that were met").hasSizeGreaterThan(10);
    }

    /** With every partner, and waits of minutes at most. */
    static TopologyConfig config() {
        TopologyConfig defaults = TopologyConfig.defaults();
        return new TopologyConfig(
                defaults.ingress(),
                new JoinConfig(true, true, true, 60_000, 30_000, 10_000, 20_000, 600_000, 2_000),
                new GroupsConfig(60_000, 2, 10_000, 600_000, GroupsConfig.ZeroVariance.DROP),
                new BatchConfig(8, 0, BatchConfig.Order.COMPLETION, 0, false),
                defaults.runtime());
    }

    /** How many records were piped in. */
    private long round() {
        random = new Random(seed);
        mutations = new RecordMutations(random);
        ends.clear();
        joinedIds.clear();
        batchedIds.clear();
        piped = 0;
        rollouts = 0;
        partners = 0;
        partnersRefused = 0;
        try (TopologyHarness opened = new TopologyHarness(config(), HOWEVER_OLD, directory, 60_000)) {
            topology = opened;
            for (int i = 0; piped < roundRecords; i++) {
                step();
                if (i % 500 == 0) {
                    drain();
                }
            }
            topology.idle(Duration.ofSeconds(700));
            drain();

            assertThat(topology.meters.get("millrace.pending.rollouts").gauge().value())
                    .as("seed %d", seed)
                    .isZero();
            assertThat(ends).as("seed %d: rollouts accounted for", seed).hasSize((int) rollouts);
            // what was joined has been batched or has left, but for less than one batch that is ready
            joinedIds.removeAll(batchedIds);
            assertThat(joinedIds.size()).as("seed %d: in no batch", seed).isLessThan(8 + 8);
            assertThat(partnersRefused).isPositive().isLessThan(partners);
            assertThat(batchedIds).hasSizeGreaterThan(roundRecords / 50);
        }
        ends.values().forEach(end -> tally.merge(end, 1L, Long::sum));
        return piped;
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

    /** A rollout and its partners, each damaged with some probability, or missing, or out of order. */
    private void pipeSample() {
        // now and then one that was there, as far back as repetitions are remembered, or will be
        long nth = random.nextInt(10) == 0 ? Math.max(0, rollouts - 1_000 + random.nextInt(1_100)) : rollouts;
        Rollout rollout = Samples.rollout(
                        "g" + nth / 2, (int) nth % 2, 2, 1 + random.nextInt(30), -1f, random.nextInt(6))
                .setReward(random.nextInt(2))
                .build();
        long offset = rollouts;
        List<Runnable> records = new ArrayList<>();
        records.add(() -> pipe(rollout));
        for (JoinSide kind : JoinSide.partners()) {
            SpecificRecord partner = switch (kind) {
                case REWARD ->
                    Samples.reward(rollout, offset).setReward(random.nextInt(3)).build();
                case REFERENCE ->
                    Samples.scoreBy(PolicyRole.REFERENCE, rollout, offset).build();
                case TEACHER ->
                    Samples.scoreBy(PolicyRole.TEACHER, rollout, offset).build();
                default -> Samples.score(rollout, offset).build();
            };
            records.add(() -> pipe(kind, rollout.getGroupId(), partner));
        }
        if (random.nextInt(5) == 0) {
            Collections.shuffle(records, random);
        }
        records.forEach(Runnable::run);
    }

    private void pipe(Rollout rollout) {
        String groupId = rollout.getGroupId();
        if (random.nextInt(20) == 0) {
            mutations.damageField(rollout);
        }
        pipe(TOPICS.rollouts(), groupId, topology.bytes(TOPICS.rollouts(), rollout, Rollout.class));
        rollouts++;
    }

    @SuppressWarnings("unchecked") // the record's own class
    private void pipe(JoinSide kind, String groupId, SpecificRecord partner) {
        if (random.nextInt(40) == 0) {
            return; // it never comes
        }
        if (random.nextInt(30) == 0) {
            mutations.damageField(partner);
        }
        pipe(kind.topic(TOPICS), groupId, topology.bytes(kind.topic(TOPICS), partner, (Class<SpecificRecord>)
                partner.getClass()));
        partners++;
    }

    private void pipe(String topic, String key, byte[] value) {
        byte[] bytes = random.nextInt(30) == 0 ? mutations.damageBytes(value) : value;
        byte[] keyBytes = random.nextInt(100) == 0 ? null : key.getBytes(StandardCharsets.UTF_8);
        topology.pipe(topic, keyBytes, random.nextInt(400) == 0 ? null : bytes, new RecordHeaders());
        piped++;
    }

    private void drain() {
        for (Trajectory trajectory : topology.trajectoriesThatCanBeRead()) {
            end(trajectory.getRolloutSource().getOffset(), "joined");
            joinedIds.add(trajectory.getRolloutId());
        }
        for (Outcome outcome : topology.outcomes()) {
            if (outcome.getStage().equals("groups")) {
                assertThat(joinedIds.remove(outcome.getRolloutId()))
                        .as("%s leaves once", outcome.getRolloutId())
                        .isTrue();
            } else if (outcome.getSource().getTopic().equals(TOPICS.rollouts())) {
                end(outcome.getSource().getOffset(), outcome.getReason());
            }
        }
        topology.deadLetters().forEach(dead -> {
            if (header(dead, "source.topic").equals(TOPICS.rollouts())) {
                end(Long.parseLong(header(dead, "source.offset")), "dead letter: " + header(dead, "reason"));
            } else if (JoinSide.partners().stream()
                    .anyMatch(kind -> header(dead, "source.topic").equals(kind.topic(TOPICS)))) {
                partnersRefused++;
            }
        });
        for (LearnerBatch batch : topology.batches()) {
            batch.getEntries()
                    .forEach(entry -> assertThat(batchedIds.add(entry.getRolloutId()))
                            .as("%s is batched once", entry.getRolloutId())
                            .isTrue());
        }
    }

    private void end(long offset, String what) {
        String before = ends.put(offset, what);
        assertThat(before)
                .as("seed %d: rollout record %d ends once, now as %s", seed, offset, what)
                .isNull();
    }
}
