package dev.millrace.api.environment;

import java.util.Objects;

/**
 * Input of an episode.
 *
 * @param rolloutId of the rollout; unchanged if it is sampled again after a generator's crash
 * @param promptTokens token ids of the prompt; read-only
 * @param state {@code environment_state} of the request, in the environment's own notation
 */
public record EpisodeStart(String rolloutId, int[] promptTokens, String state) {

    public EpisodeStart {
        Objects.requireNonNull(rolloutId, "rolloutId");
        Objects.requireNonNull(promptTokens, "promptTokens");
        Objects.requireNonNull(state, "state");
    }
}
