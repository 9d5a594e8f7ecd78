package dev.millrace.gateway;

import dev.millrace.generator.sampling.AcceptedPrompt;
import java.util.ArrayList;
import java.util.List;

/** One sample that was released to this gateway, and the requests that ask for it. Guarded by {@link SessionTable}. */
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

    /** Another request for it came while it was not finished. */
    void isAskedBy(AcceptedPrompt again) {
        askedBy.add(again);
    }

    /** Requests of which it is a sample that is finished with it. */
    List<AcceptedPrompt> askedBy() {
        return askedBy;
    }

    String name() {
        return prompt.request().getGroupId() + "/" + index;
    }
}
