package dev.millrace.generator.sampling;

import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Writes down a finished rollout as the record that leaves the generator. */
final class RolloutRecords {
    private final String generatorId;

    RolloutRecords(String generatorId) {
        this.generatorId = generatorId;
    }

    Rollout of(RunningSequence sequence, long finishedAtMs) {
        return of(sequence, finishedAtMs, null);
    }

    /** @param sampler who sampled it, where that is another than the generator's own engine */
    Rollout of(RunningSequence sequence, long finishedAtMs, @Nullable Sampler sampler) {
        PromptRequest request = sequence.prompt().request();
        Optional<VerifiedReward> verdict = sequence.verdict();
        byte[] mask = sequence.mask();
        List<Turn> turns = turnsOf(mask);
        LogProbDistribution distribution = ComparedDistribution.sampled(request.getSampling());
        ByteBuffer tempered =
                distribution == LogProbDistribution.TRUNCATED ? PackedFloats.of(sequence.temperedLogProbs()) : null;
        return Rollout.newBuilder()
                .setRunId(request.getRunId())
                .setEpoch(request.getEpoch())
                .setRolloutId(sequence.rolloutId())
                .setGroupId(request.getGroupId())
                .setOrdinal(request.getOrdinal())
                .setSampleIndex(sequence.sampleIndex())
                .setGroupSize(request.getSamples())
                .setGeneratorId(generatorId)
                .setEnvironment(request.getEnvironment())
                .setTokenizerHash(request.getTokenizerHash())
                .setPromptTokens(request.getPromptTokens())
                .setResponseTokens(PackedInts.of(sequence.responseTokens()))
                .setMask(PackedMask.of(mask))
                .setBehaviorLogProbs(PackedFloats.of(sequence.logProbs()))
                .setLogProbDistribution(distribution)
                .setTemperedLogProbs(tempered)
                .setSampling(request.getSampling())
                .setTurns(turns)
                .setVersionSpans(sequence.spans().toRecords(mask.length))
                .setReward(verdict.map(VerifiedReward::reward).orElse(0.0))
                .setRewardComponents(verdict.map(VerifiedReward::components).orElse(Map.of()))
                .setFinishReason(sequence.finishReason())
                .setAdmittedVersion(request.getAdmittedVersion())
                .setStartedAtMs(sequence.startedAtMs())
                .setFinishedAtMs(finishedAtMs)
                .setSampler(sampler)
                .setTask(request.getTask())
                .setSamplingTrace(sequence.trace())
                .setCredit(verdict.map(found -> VerifiedCredit.of(found, turns)).orElse(null))
                .setError(sequence.failure())
                .build();
    }

    /** Neighbouring tokens by the same writer form one turn; the mask names the writer. */
    static List<Turn> turnsOf(byte[] mask) {
        List<Turn> turns = new ArrayList<>();
        int start = 0;
        for (int end = 1; end <= mask.length; end++) {
            if (end == mask.length || mask[end] != mask[start]) {
                turns.add(new Turn(mask[start] == 1 ? Speaker.POLICY : Speaker.ENVIRONMENT, start, end, null));
                start = end;
            }
        }
        return turns;
    }
}
