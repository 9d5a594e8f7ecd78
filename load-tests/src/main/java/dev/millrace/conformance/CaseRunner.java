package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamily.ConformanceCase;

public final class CaseRunner {
    private final ConformanceFamilies families;

    public CaseRunner(ConformanceFamilies families) {
        this.families = families;
    }

    public CaseResult run(JsonNode golden) {
        String name = golden.path("name").asText("");
        String family = golden.path("family").asText("");
        try {
            ConformanceFamily answering = families.named(family)
                    .orElseThrow(() -> new MalformedCaseException(
                            "unknown family '" + family + "'; known: " + String.join(", ", families.names())));
            CaseConfig config = new CaseConfig("", golden.path("config"));
            ObjectNode output = answering.compute(new ConformanceCase(name, family, config, golden.path("input")));
            config.requireAllRead();
            return new CaseResult.Computed(name, family, output);
        } catch (IllegalArgumentException refusal) {
            return new CaseResult.Refused(name, family, String.valueOf(refusal.getMessage()));
        } catch (RuntimeException failure) { // reported as this case's result, so that the other cases still run
            String message = failure instanceof MalformedCaseException
                    ? String.valueOf(failure.getMessage())
                    : failure.toString();
            return new CaseResult.Failed(name, family, message);
        }
    }
}
