package dev.millrace.runtime.evaluation;

import dev.millrace.corrections.diagnostics.PromptCounts;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionEvaluation;
import java.util.Arrays;

/** Records of evaluations, by how many of two responses to each prompt are correct. */
final class MadeEvaluation {
    private MadeEvaluation() {}

    /**
     * One of the run {@code r-1}.
     *
     * @param prompts identity of the prompts
     * @param correct of two responses to each prompt
     */
    static VersionEvaluation of(long version, String prompts, int... correct) {
        VersionEvaluation.Builder record = VersionEvaluation.newBuilder()
                .setRunId("r-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("of-" + version)
                .setDataSha256(prompts)
                .setSamplesPerPrompt(2)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 7L, false, 0, 0.0, false))
                .setCorrectAbove(0.5)
                .setStartLogProb(version == 0 ? null : -1.25)
                .setFailed(0)
                .setStartedAtMs(1000 * version)
                .setFinishedAtMs(1000 * version + 500);
        return EvaluationRecords.fill(
                        record,
                        Arrays.stream(correct)
                                .mapToObj(count -> new PromptCounts(2, count, count, 10L + count, 1))
                                .toList())
                .build();
    }
}
