package dev.millrace.schemas.run;

import dev.millrace.schemas.VersionEvaluation;
import java.nio.charset.StandardCharsets;

/**
 * The key of an evaluation: {@code policy_id/epoch/version/data_sha256}.
 *
 * <p>Under compaction one record is left of a version and its prompts, whoever wrote it how often.
 *
 * @param version of which policy, in which epoch
 * @param dataSha256 of the prompts
 */
public record EvaluationKey(VersionKey version, String dataSha256) {

    /** The key under which an evaluation belongs. */
    public static EvaluationKey of(VersionEvaluation evaluation) {
        return new EvaluationKey(
                new VersionKey(evaluation.getPolicyId(), evaluation.getEpoch(), evaluation.getVersion()),
                evaluation.getDataSha256());
    }

    /** As it goes to the log. */
    public byte[] bytes() {
        return toString().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        return version + "/" + dataSha256;
    }
}
