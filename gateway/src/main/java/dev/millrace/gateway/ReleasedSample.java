package dev.millrace.gateway;

import dev.millrace.generator.sampling.AcceptedPrompt;
import java.util.ArrayList;
import java.util.List;

/** A sample released to this gateway, with its requests. Guarded by {@link SessionTable}. */
final class ReleasedSample {
    private final AcceptedPrompt prompt;
    private final int index;
    private final List<AcceptedPrompt> askedBy = new ArrayList<>();

    ReleasedSample(AcceptedPrompt prompt, int index) {
        this.prompt = prompt;
        this.index = index;
        askedBy.add(prompt);
    }

    AcceptedPrompt prompt() {
        return prompt;
    }

    int index() {
        return index;
    }

    void isAskedBy(AcceptedPrompt again) {
        askedBy.add(again);
    }

    List<AcceptedPrompt> askedBy() {
        return askedBy;
    }

    String name() {
        return prompt.request().getGroupId() + "/" + index;
    }
}
