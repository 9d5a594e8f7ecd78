package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Environment;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import org.apache.kafka.common.TopicPartition;

/** Requests as tests need them. */
final class Requests {
    static final String HASH = "vocabulary";

    private Requests() {}

    static PromptRequest.Builder request(long ordinal, int[] tokens, String environment, String state, int samples) {
        return PromptRequest.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setGroupId("0-" + ordinal)
                .setOrdinal(ordinal)
                .setEnvironment(environment)
                .setEnvironmentState(state)
                .setPromptTokens(PackedInts.of(tokens))
                .setSamples(samples)
                .setSampling(sampling(1, 0, 1, 5))
                .setTokenizerHash(HASH)
                .setAdmittedVersion(0)
                .setReleasedAtMs(1);
    }

    static SamplingParameters sampling(double temperature, int topK, double topP, int maxTokens) {
        return new SamplingParameters(temperature, topK, topP, maxTokens, 77L, false, 0, 0.0, false);
    }

    /** At temperature 1. */
    static SamplingParameters minP(double share) {
        return new SamplingParameters(1.0, 0, 1.0, 5, 77L, false, 0, share, false);
    }

    /** At temperature 1, with something recorded of each draw. */
    static SamplingParameters recorded(int topK, double topP, boolean keepSamplingMask, int topLogProbs) {
        return new SamplingParameters(1.0, topK, topP, 5, 77L, keepSamplingMask, topLogProbs, 0.0, false);
    }

    static AcceptedPrompt accepted(PromptRequest request, int[] tokens, Environment environment) {
        return new AcceptedPrompt(request, tokens, environment, new TopicPartition("prompts", 0), request.getOrdinal());
    }
}
