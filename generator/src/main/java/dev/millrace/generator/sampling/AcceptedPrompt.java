package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Environment;
import dev.millrace.policy.session.Sampling;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import org.apache.kafka.common.TopicPartition;

/**
 * A request that passed {@link PromptCheck}, with what sampling needs of it at hand.
 *
 * @param tokens prompt tokens, shared by the group's samples and not to be written
 */
public record AcceptedPrompt(
        PromptRequest request, int[] tokens, Environment environment, TopicPartition partition, long offset)
        implements PromptReading {

    Sampling sampling() {
        SamplingParameters parameters = request.getSampling();
        return new Sampling(
                (float) parameters.getTemperature(),
                parameters.getTopK(),
                (float) parameters.getTopP(),
                (float) parameters.getMinP(),
                parameters.getKeepSamplingMask(),
                parameters.getTopLogProbs());
    }
}
