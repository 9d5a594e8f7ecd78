package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.AcceptedPrompt;
import java.util.List;

/** Tokens that end an answer. */
final class StopTokens {
    private StopTokens() {}

    /** Those of the tokenizer; where it has none, that of the environment, if it has one. */
    static List<Integer> of(AcceptedPrompt prompt, Tokenizer tokenizer) {
        if (!tokenizer.stopTokens().isEmpty()) {
            return tokenizer.stopTokens();
        }
        int end = prompt.environment().endToken();
        return end < 0 ? List.of() : List.of(end);
    }
}
