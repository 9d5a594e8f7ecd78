package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.trm.StoredDistributions;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A trajectory's kept tokens are what the learner's softmax is over, wherever it scores or differentiates. */
class KeptTokensTest {
    private static final DecoderShape SHAPE = SyntheticRollouts.SHAPE;

    /** Loads the serde, which marks the record classes as trusted for copying builders. */
    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(Trajectory.class, new InMemorySchemaRegistry());
    }

    @Test
    void shouldScoreAndDifferentiateOverTheKeptTokensOfEveryMember() {
        StepMembers members = new StepMembers(batch());
        SequenceBatch sequences = members.sequences();
        assertThat(IntStream.range(0, members.count()).filter(s -> sequences.kept(s) == null))
                .containsExactly(2);
        Weights weights = Weights.random(SHAPE, SyntheticRollouts.SEED);
        float[] ones = new float[sequences.scoredCount()];
        Arrays.fill(ones, 1f);
        float[] zeros = new float[ones.length];
        float[] temperatures = new float[members.count()];
        Arrays.fill(temperatures, 1f);
        Gradients expected = new Gradients(SHAPE);
        TokenScores scores;
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 1024)) {
            scores = session.accumulate(weights, sequences, temperatures, ones, zeros, expected);
        }
        Gradients found = new Gradients(SHAPE);
        float[] scored = new float[ones.length];
        try (GradientShards shards = new GradientShards(
                Engine.cpu(), SHAPE, Optional.empty(), StepConfig.defaults().withCut(64, 2), 2)) {
            int[] all = IntStream.range(0, members.count()).toArray();
            shards.score(weights, members, all, scored, null, new StepMetricsTally());
            shards.differentiate(
                    weights, members.select(all), new GradientShards.TokenCoefficients(ones, zeros, zeros), found);
        }
        assertThat(scored).containsExactly(scores.logProbs(), within(1e-6f));
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(found.values(spec.name()))
                    .as(spec.name())
                    .containsExactly(expected.values(spec.name()), within(1e-5f));
        }
    }

    /** Of likeliest tokens that a rollout names, a forward pass finds what a session finds, and the rest stays as recorded. */
    @Test
    void shouldScoreTheLikeliestTokensOfEveryMember() {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        try (SyntheticRollouts rollouts = new SyntheticRollouts(2)) {
            for (int i = 0; i < 4; i++) {
                Trajectory trajectory = rollouts.next();
                trajectories.add(likeliest(trajectory, i == 1 ? 1 : 2));
                entries.add(SyntheticRollouts.entry(trajectory, 0, i));
            }
        }
        StepMembers members = new StepMembers(TrainingBatch.of(SyntheticRollouts.batch(1, entries), trajectories));
        Weights weights = Weights.random(SHAPE, SyntheticRollouts.SEED);
        CurrentMoments moments =
                CurrentMoments.recorded(members, Set.of(StageInput.DISTRIBUTIONS), new int[] {0, 1, 2});
        float[] logProbs = members.proximal().clone();
        try (GradientShards shards = new GradientShards(
                Engine.cpu(), SHAPE, Optional.empty(), StepConfig.defaults().withCut(64, 2), 2)) {
            shards.score(weights, members, new int[] {0, 1, 2}, logProbs, moments, new StepMetricsTally());
        }
        StageFacts.Builder facts = StageFacts.of(members.own(), members.rewards());
        moments.addTo(facts);
        StoredDistributions stored = facts.build().distributions();
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 1024)) {
            SequenceBatch sequences = members.sequences();
            for (int s = 0; s < 4; s++) {
                int[] ids = new int[2 * (sequences.offset(s + 1) - sequences.offset(s))];
                for (int t = 0; t < ids.length / 2; t++) {
                    ids[2 * t] = PackedInts.get(trajectories.get(s).getResponseTokens(), t);
                    ids[2 * t + 1] = (ids[2 * t] + 1) % SHAPE.vocabSize();
                }
                float[] found = session.scoreEntries(
                                weights,
                                members.select(new int[] {s}).sequences(),
                                new float[] {1f},
                                new int[][] {ids},
                                2)
                        .logProbs();
                for (int t = 0; t < ids.length / 2; t++) {
                    if (members.own().isTrained(sequences.offset(s) + t)) {
                        double p = Math.exp(found[2 * t]);
                        double q = s == 1 ? 0 : Math.exp(found[2 * t + 1]);
                        double expected = s == 3 // as recorded: the same under both
                                ? 0
                                : Math.abs(0.5 - p)
                                        + (s == 1 ? 0 : Math.abs(0.25 - q))
                                        + Math.abs((s == 1 ? 0.5 : 0.25) - (1 - p - q));
                        assertThat(stored.totalVariationAt(sequences.offset(s) + t))
                                .as("member %d, token %d", s, t)
                                .isCloseTo(expected / 2, within(1e-5));
                    }
                }
            }
        }
    }

    /** The sampled token with one half and, of two, the next with a quarter: by behavior and, as recorded, by proximal. */
    private static Trajectory likeliest(Trajectory trajectory, int k) {
        List<Integer> ids = new ArrayList<>();
        List<Float> logProbs = new ArrayList<>();
        int rows = 0;
        for (int t = 0; t < PackedMask.length(trajectory.getMask()); t++) {
            if (PackedMask.get(trajectory.getMask(), t) == 1) {
                for (int i = 0; i < k; i++) {
                    ids.add((PackedInts.get(trajectory.getResponseTokens(), t) + i) % SHAPE.vocabSize());
                    logProbs.add((float) Math.log(i == 0 ? 0.5 : 0.25));
                }
                rows++;
            }
        }
        float[] values = new float[logProbs.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = logProbs.get(i);
        }
        TopLogProbs top = new TopLogProbs(k, packed(ids), PackedFloats.of(values), PackedFloats.of(new float[rows]));
        return Trajectory.newBuilder(trajectory)
                .setTopLogProbs(top)
                .setProximalTopLogProbs(top)
                .build();
    }

    /** Six members; all but one were drawn from a part of the vocabulary. */
    private static TrainingBatch batch() {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        SplittableRandom random = new SplittableRandom(3);
        try (SyntheticRollouts rollouts = new SyntheticRollouts(2)) {
            for (int i = 0; i < 6; i++) {
                Trajectory trajectory = rollouts.next();
                trajectories.add(i == 2 ? trajectory : kept(trajectory, random));
                entries.add(SyntheticRollouts.entry(trajectory, 0, i));
            }
        }
        return TrainingBatch.of(SyntheticRollouts.batch(1, entries), trajectories);
    }

    private static Trajectory kept(Trajectory trajectory, SplittableRandom random) {
        List<Integer> counts = new ArrayList<>();
        List<Integer> ids = new ArrayList<>();
        for (int t = 0; t < PackedMask.length(trajectory.getMask()); t++) {
            if (PackedMask.get(trajectory.getMask(), t) == 1) {
                int sampled = PackedInts.get(trajectory.getResponseTokens(), t);
                int others = random.nextInt(4);
                counts.add(others + 1);
                for (int i = 0; i <= others; i++) {
                    ids.add((sampled + i) % SHAPE.vocabSize());
                }
            }
        }
        return Trajectory.newBuilder(trajectory)
                .setKeptTokens(new KeptSupport(packed(counts), packed(ids)))
                .build();
    }

    private static ByteBuffer packed(List<Integer> values) {
        return PackedInts.of(values.stream().mapToInt(Integer::intValue).toArray());
    }
}
