package dev.millrace.learner.step;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.RecordedBaseline;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * A recorded batch of five groups of four, one of them rewarded alike, sampled by versions 0 and 1, and the weights of version 4, which four steps on other
 * batches made. What an algorithm makes of the two in two steps is a function of the algorithm.
 */
final class StaleBatch implements AutoCloseable {
    static final long VERSION = 4;
    private static final DecoderShape SHAPE = SyntheticRollouts.SHAPE;
    /** A length guard that looks back one step saw one token there. */
    private static final ControlState SHORTER_BEFORE = new ControlState(
            Map.of("length_guard.steps", 1.0, "length_guard.remembered", 1.0, "length_guard.tokens.0", 1.0));

    private static final int GROUP_SIZE = 4;
    /** Whose members are rewarded alike. */
    private static final int EQUAL_GROUP = 4;

    private static final int SEQUENCES = 20;
    /** Large enough that two minibatches meet their trust regions. */
    private static final double LEARNING_RATE = 3e-2;

    private static final StepConfig STEP = StepConfig.defaults()
            .withOptimizer(new OptimizerConfig(LEARNING_RATE, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 0));

    private final SyntheticRollouts rollouts = new SyntheticRollouts(11);
    private final SplittableRandom noise = new SplittableRandom(3);
    private final SplittableRandom notes = new SplittableRandom(4);
    private final TrainingBatch batch = next(0);
    private final Weights start = Weights.random(SHAPE, SyntheticRollouts.SEED);

    StaleBatch() {
        Algorithm before = NamedAlgorithms.of("token_tis");
        try (BatchOptimizer learner = new BatchOptimizer(Engine.cpu(), SHAPE, STEP, before)) {
            AdamW adamW = learner.newOptimizer();
            for (int version = 0; version < VERSION; version++) {
                learner.train(next(version + 1), version + 1, ControlState.initial(), start, adamW);
            }
        }
    }

    private TrainingBatch next(long id) {
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        for (int i = 0; i < SEQUENCES; i++) {
            Trajectory trajectory = rollouts.next();
            int tokens = PackedMask.length(trajectory.getMask());
            trajectory.put("group_id", "g" + i / GROUP_SIZE);
            trajectory.put("sample_index", i % GROUP_SIZE);
            trajectory.put("group_size", GROUP_SIZE);
            trajectory.put(
                    "version_spans",
                    i % 3 == 0
                            ? List.of(new VersionSpan(1L, 0, tokens))
                            : List.of(new VersionSpan(0L, 0, tokens / 2), new VersionSpan(1L, tokens / 2, tokens)));
            trajectory.put("reference_log_probs", trajectory.getBehaviorLogProbs());
            trajectory.put("teacher_log_probs", trajectory.getBehaviorLogProbs());
            trajectory.put("behavior_log_probs", PackedFloats.of(byAnotherEngine(trajectory)));
            trajectory.put("turns", List.of(turn(0, 1), turn(1, tokens)));
            trajectory.put("credit", credit(tokens));
            float[] old = PackedFloats.toArray(trajectory.getOldLogProbs());
            trajectory.put("top_log_probs", sampledOnly(trajectory, byAnotherEngine(trajectory)));
            trajectory.put("proximal_top_log_probs", sampledOnly(trajectory, old));
            trajectory.put(
                    "reward_components", Map.of("low", trajectory.getReward() / 2, "all", trajectory.getReward() / 2));
            if (i / GROUP_SIZE == EQUAL_GROUP) {
                trajectory.put("reward", 0.5);
            }
            trajectories.add(trajectory);
            int group = i / GROUP_SIZE;
            entries.add(BatchEntry.newBuilder(SyntheticRollouts.entry(trajectory, 0, i))
                    .setBaseline(new RecordedBaseline("g" + group, group / 10.0))
                    .build());
        }
        return TrainingBatch.of(SyntheticRollouts.batch(id, entries), trajectories);
    }

    private static Turn turn(int start, int end) {
        return new Turn(Speaker.POLICY, start, end, null);
    }

    /** Something for each of the two turns, and for the last token. */
    private Credit credit(int tokens) {
        float[] perToken = new float[tokens];
        perToken[tokens - 1] = (float) noise.nextDouble();
        Credit.Builder credit = Credit.newBuilder()
                .setTurnLevelRewards(
                        PackedFloats.of(new float[] {(float) noise.nextDouble(), (float) noise.nextDouble()}))
                .setTokenLevelRewards(PackedFloats.of(perToken));
        float[] values = new float[tokens];
        for (int t = 0; t < tokens; t++) {
            values[t] = (float) notes.nextDouble();
        }
        return credit.setTokenLevelValues(PackedFloats.of(values))
                .setGreedyReward(notes.nextDouble())
                .build();
    }

    /** A row of one entry for each trained token: the sampled one. */
    private static TopLogProbs sampledOnly(Trajectory trajectory, float[] logProbs) {
        int[] response = PackedInts.toArray(trajectory.getResponseTokens());
        int rows = PackedMask.count(trajectory.getMask());
        int[] ids = new int[rows];
        float[] own = new float[rows];
        float[] rest = new float[rows];
        int row = 0;
        for (int t = 0; t < response.length; t++) {
            if (PackedMask.get(trajectory.getMask(), t) == 1) {
                ids[row] = response[t];
                own[row] = logProbs[t];
                rest[row++] = (float) Math.log1p(-Math.exp(logProbs[t]));
            }
        }
        return new TopLogProbs(1, PackedInts.of(ids), PackedFloats.of(own), PackedFloats.of(rest));
    }

    /** What an engine of little precision would have said of the tokens. */
    private float[] byAnotherEngine(Trajectory trajectory) {
        float[] logProbs = PackedFloats.toArray(trajectory.getOldLogProbs());
        for (int t = 0; t < logProbs.length; t++) {
            logProbs[t] = (float) Math.min(-1e-3, logProbs[t] + 0.3 * (noise.nextDouble() - 0.5));
        }
        return logProbs;
    }

    /** The weights after two steps on the batch. */
    byte[] after(Algorithm algorithm) {
        try (BatchOptimizer learner = new BatchOptimizer(Engine.cpu(), SHAPE, STEP, algorithm)) {
            if (learner.referenceVersion().isPresent()) {
                learner.useReference(Weights.random(SHAPE, SyntheticRollouts.SEED));
            }
            Weights weights = start.copy();
            AdamW adamW = learner.newOptimizer();
            StepReport first = learner.train(batch, VERSION, SHORTER_BEFORE, weights, adamW);
            learner.train(batch, VERSION + 1, first.controls(), weights, adamW);
            return bytes(weights);
        }
    }

    private static byte[] bytes(Weights weights) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (TensorSpec spec : SHAPE.tensors()) {
            byte[] bytes = new byte[weights.bytes(spec.name()).remaining()];
            weights.bytes(spec.name()).get(bytes);
            all.writeBytes(bytes);
        }
        return all.toByteArray();
    }

    @Override
    public void close() {
        rollouts.close();
    }
}
