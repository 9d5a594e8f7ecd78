package dev.millrace.benchmarks.learner;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * A synthetic batch: random tokens in groups of eight, every response token trained, sampled and scored by version 0.
 *
 * @param sequences a multiple of 8
 * @param prompt    tokens of each prompt
 * @param response  tokens of each response
 */
record StepInput(String name, DecoderShape shape, int sequences, int prompt, int response) {
    private static final int GROUP = 8;

    /** The default task's. */
    static StepInput inc() {
        return new StepInput(
                "inc: 2 layers of 64, 256 sequences of 7 + 5",
                new DecoderShape(16, 64, 2, 4, 4, 16, 128, 64, 100, 1e-6, false, false),
                256,
                7,
                5);
    }

    /** Short sequences through four layers of 128. */
    static StepInput shortAnswers() {
        return new StepInput("4 layers of 128, 32 sequences of 8 + 56", wider(), 32, 8, 56);
    }

    /** Long ones. */
    static StepInput longAnswers() {
        return new StepInput("4 layers of 128, 8 sequences of 64 + 448", wider(), 8, 64, 448);
    }

    private static DecoderShape wider() {
        return new DecoderShape(512, 128, 4, 4, 4, 32, 352, 512, 10_000, 1e-6, false, false);
    }

    /** As the engine's own benchmark takes a step: eight sequences, of 128 and 64 tokens. */
    static StepInput eight(String name, DecoderShape shape) {
        return new StepInput(name + ", 8 sequences of 128 + 64", shape, 8, 128, 64);
    }

    StepInput withSequences(int other) {
        return new StepInput(name, shape, other, prompt, response);
    }

    int tokens() {
        return sequences * (prompt + response);
    }

    TrainingBatch batch() {
        SplittableRandom random = new SplittableRandom(1);
        List<Trajectory> trajectories = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        for (int s = 0; s < sequences; s++) {
            Trajectory trajectory = trajectory(s, random);
            trajectories.add(trajectory);
            entries.add(BatchEntry.newBuilder()
                    .setRolloutId(trajectory.getRolloutId())
                    .setGroupId(trajectory.getGroupId())
                    .setPartition(0)
                    .setOffset(s)
                    .setRolloutPartition(0)
                    .setRolloutOffset(s)
                    .setReward(trajectory.getReward())
                    .setAdvantage(trajectory.getReward() - 0.5)
                    .setOldestVersion(0)
                    .setTrainedTokens(response)
                    .build());
        }
        LearnerBatch batch = LearnerBatch.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(1)
                .setAssembledVersion(1)
                .setEntries(entries)
                .setStages(List.of())
                .setTrainedTokens((long) sequences * response)
                .setEssRatio(1.0)
                .setEssRatioTruncated(1.0)
                .setSecondMoment(0.0)
                .setStepScale(1)
                .setStalenessMean(0)
                .setStalenessMax(0)
                .setAssembledAtMs(2)
                .build();
        return TrainingBatch.of(batch, trajectories);
    }

    private Trajectory trajectory(int s, SplittableRandom random) {
        float[] logProbs = new float[response];
        byte[] mask = new byte[response];
        Arrays.fill(logProbs, (float) -Math.log(shape.vocabSize()));
        Arrays.fill(mask, (byte) 1);
        LogCoordinates nowhere = new LogCoordinates("synthetic", 0, (long) s);
        return Trajectory.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setRolloutId("g" + s / GROUP + "/" + s % GROUP)
                .setGroupId("g" + s / GROUP)
                .setOrdinal(s / GROUP)
                .setSampleIndex(s % GROUP)
                .setGroupSize(GROUP)
                .setRolloutSource(nowhere)
                .setScoreSource(nowhere)
                .setPromptTokens(
                        PackedInts.of(random.ints(prompt, 0, shape.vocabSize()).toArray()))
                .setResponseTokens(PackedInts.of(
                        random.ints(response, 0, shape.vocabSize()).toArray()))
                .setMask(PackedMask.of(mask))
                .setTemperature(1)
                .setVersionSpans(List.of(new VersionSpan(0L, 0, response)))
                .setBehaviorLogProbs(PackedFloats.of(logProbs))
                .setOldLogProbs(PackedFloats.of(logProbs))
                .setProximalLogProbs(PackedFloats.of(logProbs))
                .setProximalVersion(0)
                .setReward(s % 2)
                .setFinishReason("STOP")
                .setFinishedAtMs(1)
                .setScoredAtMs(1)
                .build();
    }
}
