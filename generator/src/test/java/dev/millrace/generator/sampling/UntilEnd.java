package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environment;
import dev.millrace.generator.environment.Episode;
import dev.millrace.generator.environment.Reaction;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.Transcript;
import dev.millrace.generator.environment.Verdict;
import java.util.Map;

/** Goes on until the policy ends it; worth one per token. */
final class UntilEnd implements Environment, Episode {
    @Override
    public String name() {
        return "until-end";
    }

    @Override
    public int endToken() {
        return Symbols.END;
    }

    @Override
    public Episode begin(String state) {
        return this;
    }

    @Override
    public Reaction afterToken(Transcript response) {
        return Reaction.GO_ON;
    }

    @Override
    public Verdict verify(Transcript response) {
        return new Verdict(response.length(), Map.of());
    }
}
