package dev.millrace.generator.sampling;

import dev.millrace.schemas.SamplingParameters;
import java.util.List;
import java.util.Optional;

/**
 * What an answer is asked for with.
 *
 * @param promptTokens all tokens before it; not to be written any more
 * @param sampling how it is drawn; {@code max_tokens} are its own, and the seed decides the draws alone
 * @param stopTexts that end it, wherever tokens begin and end
 * @param leastVersion that is to sample it, as far as it comes in time
 */
public record TurnOrder(
        int[] promptTokens,
        SamplingParameters sampling,
        List<Integer> stopTokens,
        List<String> stopTexts,
        long leastVersion) {

    public TurnOrder {
        stopTokens = List.copyOf(stopTokens);
        stopTexts = List.copyOf(stopTexts);
        if (promptTokens.length == 0) {
            throw new IllegalArgumentException("a prompt needs at least one token");
        }
    }

    /** Why prompt and answer have no room in a slot, a sentence; empty if they have. */
    public Optional<String> tooLong(GeneratorConfig config) {
        long needed = (long) promptTokens.length + sampling.getMaxTokens();
        return needed <= config.capacityTokens()
                ? Optional.empty()
                : Optional.of("a prompt of " + promptTokens.length + " tokens and max_tokens=" + sampling.getMaxTokens()
                        + " need " + needed + " positions, a slot has " + config.capacityTokens()
                        + " (generator.capacity_tokens)");
    }
}
