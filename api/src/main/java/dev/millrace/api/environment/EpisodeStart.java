package dev.millrace.api.environment;

import java.util.Objects;

/**
 * What an episode begins with.
 *
 * @param rolloutId of the rollout that is written; one that is sampled again, since its generator died, has the same one again
 * @param promptTokens token ids of the prompt; not to be written
 * @param state {@code environment_state} of the request, in the environment's own notation
 */
public record EpisodeStart(String rolloutId, int[] promptTokens, String state) {

    public EpisodeStart {
        Objects.requireNonNull(rolloutId, "rolloutId");
        Objects.requireNonNull(promptTokens, "promptTokens");
        Objects.requireNonNull(state, "state");
    }
}
