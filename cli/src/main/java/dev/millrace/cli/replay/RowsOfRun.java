package dev.millrace.cli.replay;

import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.retrain.RecordedPrompts;
import dev.millrace.schemas.PromptRequest;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What the prompts of a recorded run say beside their tokens, group by group; read when the first is asked for. Thread-safe. */
final class RowsOfRun implements AutoCloseable {
    private static final int KEPT = 1_024;

    private final RecordedRun run;
    private final Map<String, Optional<String>> newest = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Optional<String>> eldest) {
            return size() > KEPT;
        }
    };
    private @Nullable RecordedPrompts prompts;

    RowsOfRun(RecordedRun run) {
        this.run = run;
    }

    /** The environment's state; empty where the prompt is not there any more. */
    synchronized Optional<String> of(String group) {
        if (prompts == null) {
            prompts = RecordedPrompts.all(run);
        }
        RecordedPrompts all = prompts;
        return newest.computeIfAbsent(group, any -> all.find(any).map(PromptRequest::getEnvironmentState));
    }

    @Override
    public synchronized void close() {
        if (prompts != null) {
            prompts.close();
            prompts = null;
        }
    }
}
