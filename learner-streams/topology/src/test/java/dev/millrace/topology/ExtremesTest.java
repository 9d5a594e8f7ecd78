package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.Extremes.Extreme;
import dev.millrace.topology.ingress.JoinSide;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every numeric field of every record that the topology reads, with every extreme of its type, between honest records: none ends the topology or costs an honest
 * rollout. The learner here is honest: it publishes a version of each batch.
 */
class ExtremesTest {
    private static final int ROUND = 5_000;
    private static final Duration BETWEEN = Duration.ofMillis(20);

    @TempDir
    Path directory;

    private TopologyHarness topology;
    private long version;
    private long lastBatch;
    private long piped;
    private Trajectory strangers;
    private final Set<String> honest = new HashSet<>();
    private final Set<String> trained = new HashSet<>();

    @Test
    void shouldTrainOnHonestRolloutsBesideEveryExtreme() {
        run(4_000);
    }

    @Test
    @Tag("faults")
    void shouldTrainOnHonestRolloutsBesideAHundredThousandExtremes() {
        run(100_000);
    }

    private void run(long records) {
        long all = 0;
        for (int round = 0; all < records; round++) {
            all += round((int) Math.min(ROUND, records - all), round);
        }
    }

    /** How many records were piped in. */
    private long round(int records, long seed) {
        version = 4; // which the samples' scores are of
        lastBatch = -1;
        piped = 0;
        honest.clear();
        trained.clear();
        try (TopologyHarness opened = new TopologyHarness(FuzzTest.config(), directory.resolve(Long.toString(seed)))) {
            topology = opened;
            topology.pipe(Samples.version(version));
            strangers(0);
            learn();
            List<Extreme<?>> extremes = extremes();
            Collections.shuffle(extremes, new Random(seed));
            for (int i = 0; piped < records; i++) {
                if (i % 8 == 0) {
                    honest(i);
                }
                stranger(extremes.get(i % extremes.size()), i);
                learn();
            }
            topology.idle(Duration.ofSeconds(700));
            learn();
            Set<String> missing = new HashSet<>(honest);
            missing.removeAll(trained);
            assertThat(missing.size())
                    .as("honest rollouts in no batch, apart from %s: %s", topology.waits(), missing)
                    .isLessThan(8);
        }
        return piped;
    }

    /** Of each kind of record that the topology reads. */
    private List<Extreme<?>> extremes() {
        Rollout rollout = rollout("x", 0);
        List<Extreme<?>> all = new ArrayList<>(Extremes.of(rollout));
        partners(rollout, 0).values().forEach(partner -> all.addAll(Extremes.of(partner)));
        all.addAll(Extremes.of(Samples.version(1, 0)));
        all.addAll(Extremes.of(Samples.starved(0, 0)));
        all.addAll(Extremes.of(strangers));
        assertThat(all).as("fields, twelve times each").hasSizeGreaterThan(1_000);
        return all;
    }

    private Rollout rollout(String group, int sample) {
        return Samples.rollout(group, sample, 2, 3, -1f, version)
                .setReward(sample)
                .setAdmittedVersion(version)
                .build();
    }

    private Map<JoinSide, SpecificRecord> partners(Rollout rollout, long offset) {
        Map<JoinSide, SpecificRecord> partners = new EnumMap<>(JoinSide.class);
        for (JoinSide kind : JoinSide.partners()) {
            partners.put(
                    kind,
                    switch (kind) {
                        case REWARD ->
                            Samples.reward(rollout, offset)
                                    .setReward(rollout.getSampleIndex())
                                    .build();
                        case REFERENCE ->
                            Samples.scoreBy(PolicyRole.REFERENCE, rollout, offset)
                                    .build();
                        case TEACHER ->
                            Samples.scoreBy(PolicyRole.TEACHER, rollout, offset).build();
                        default -> Samples.score(rollout, offset).build();
                    });
        }
        return partners;
    }

    private void honest(int i) {
        for (int sample = 0; sample < 2; sample++) {
            Rollout rollout = rollout("honest-" + i, sample);
            honest.add(rollout.getRolloutId());
            sample(rollout, null);
        }
    }

    /** Two rollouts of a stranger's group, and a trajectory of theirs as the topology made it. */
    private void strangers(int i) {
        for (int sample = 0; sample < 2; sample++) {
            sample(rollout("stranger-" + i, sample), null);
        }
    }

    private void sample(Rollout rollout, SpecificRecord forged) {
        long offset = pipe(TOPICS.rollouts(), rollout.getGroupId(), rollout);
        partners(rollout, offset).forEach((kind, partner) -> {
            if (forged != null && forged.getClass() == partner.getClass() && isOf(forged, partner)) {
                put(forged, "rollout_id", rollout.getRolloutId());
                put(forged, "group_id", rollout.getGroupId());
                pipe(kind.topic(TOPICS), rollout.getGroupId(), forged);
            } else {
                pipe(kind.topic(TOPICS), rollout.getGroupId(), partner);
            }
        });
    }

    /** Whether a score is of the same kind. */
    private static boolean isOf(SpecificRecord forged, SpecificRecord partner) {
        return !(forged instanceof Score score)
                || score.getVectors().size() == ((Score) partner).getVectors().size()
                        && score.getVectors()
                                .get(0)
                                .get(0)
                                .equals(((Score) partner).getVectors().get(0).get(0));
    }

    private void stranger(Extreme<?> extreme, int i) {
        SpecificRecord changed = (SpecificRecord) extreme.record();
        SpecificRecord forged = SpecificData.get().deepCopy(changed.getSchema(), changed);
        String group = "stranger-" + i;
        if (forged instanceof Rollout rollout) {
            if (rollout.getGroupSize() == 2 && rollout.getSampleIndex() == 0) {
                put(rollout, "rollout_id", group + "/0");
            }
            put(rollout, "group_id", group);
            sample(rollout, null);
        } else if (forged instanceof PolicyVersion made) {
            if (made.getVersion() == 1) {
                put(made, "version", version + 1);
                put(made, "parent_version", made.getParentVersion() == 0 ? version : made.getParentVersion());
            }
            topology.pipeAlone(made);
            piped++;
        } else if (forged instanceof TrainingStep step) {
            topology.pipe(step);
            piped++;
        } else if (forged instanceof Trajectory trajectory) {
            pipe(TOPICS.trajectories(), trajectory.getGroupId(), trajectory);
        } else {
            sample(rollout(group, 0), forged);
        }
    }

    private static void put(SpecificRecord record, String field, Object value) {
        record.put(record.getSchema().getField(field).pos(), value);
    }

    @SuppressWarnings("unchecked") // the record's own class
    private long pipe(String topic, String key, SpecificRecord record) {
        piped++;
        topology.later(BETWEEN);
        return topology.pipe(topic, key, topology.bytes(topic, record, (Class<SpecificRecord>) record.getClass()));
    }

    private void learn() {
        for (Trajectory trajectory : topology.trajectoriesThatCanBeRead()) {
            strangers = strangers == null ? trajectory : strangers;
        }
        for (LearnerBatch batch : topology.batches()) {
            for (BatchEntry entry : batch.getEntries()) {
                trained.add(entry.getRolloutId());
            }
            lastBatch = batch.getBatchId();
            version++;
            topology.pipeAlone(Samples.version(version, lastBatch));
        }
        for (Outcome outcome : topology.outcomes()) {
            assertThat(honest)
                    .as("%s: %s", outcome.getReason(), outcome.getDetail())
                    .doesNotContain(outcome.getRolloutId());
        }
    }
}
