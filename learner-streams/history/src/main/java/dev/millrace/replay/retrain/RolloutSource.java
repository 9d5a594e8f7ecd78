package dev.millrace.replay.retrain;

import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import java.util.List;
import java.util.Optional;
import java.util.function.LongFunction;

/** Samples a run's prompts with any weights, as the run's generators do. Used by one thread. */
public interface RolloutSource {

    /**
     * A requested rollout.
     *
     * @param request of its group
     * @param index of it in the group
     * @param versions which version samples which response positions; the last span extends to the end
     */
    record Sample(PromptRequest request, int index, List<VersionSpan> versions) {}

    /** Why a prompt cannot be sampled here, as a sentence; empty if it can be. */
    Optional<String> refusal(PromptRequest request);

    /**
     * One rollout for each sample, in their order, rewarded by the prompt's environment.
     *
     * @param weights of a version; not to be written to
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the weights give no numbers
     */
    List<Rollout> sample(List<Sample> samples, LongFunction<Weights> weights);
}
