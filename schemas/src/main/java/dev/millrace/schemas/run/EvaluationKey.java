package dev.millrace.schemas.run;

import dev.millrace.schemas.VersionEvaluation;
import java.nio.charset.StandardCharsets;

/**
 * The key of an evaluation: {@code policy_id/epoch/version/data_sha256}.
 *
 * <p>Compaction keeps one record per version and prompts, even if several processes wrote it.
 */
public record EvaluationKey(VersionKey version, String dataSha256) {

    public static EvaluationKey of(VersionEvaluation evaluation) {
        return new EvaluationKey(
                new VersionKey(evaluation.getPolicyId(), evaluation.getEpoch(), evaluation.getVersion()),
                evaluation.getDataSha256());
    }

    public byte[] bytes() {
        return toString().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        return version + "/" + dataSha256;
    }
}
