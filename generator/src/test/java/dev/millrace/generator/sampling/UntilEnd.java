package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.Symbols;
import java.util.Map;

/** Continues until the policy ends it; worth one per token. */
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
    public StepResult afterToken(Transcript response) {
        return StepResult.GO_ON;
    }

    @Override
    public VerifiedReward verify(Transcript response) {
        return new VerifiedReward(response.length(), Map.of());
    }
}
