package dev.millrace.runtime.pipeline;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.Optional;
import java.util.function.Consumer;

/** By what a run's tokens are text, for one who reads the run. */
public final class RunTokenizer {
    private RunTokenizer() {}

    /**
     * Of a run on text, where its files can be read here; otherwise its tokens have no text.
     *
     * @param connection where the files may be; empty for an archive, and for a folder that has them
     * @param without is told why there is no text, as a clause
     */
    public static Optional<Tokenizer> ofText(
            MillraceConfig config, Optional<LogConnection> connection, Consumer<String> without) {
        if (!(config.task() instanceof TextTask text)) {
            return Optional.empty();
        }
        try {
            Tokenizer tokenizer = connection
                    .flatMap(log -> TokenizerFiles.of(config, log))
                    .map(TokenizerFiles::readTask)
                    .orElse(text)
                    .task()
                    .tokenizer();
            tokenizer.text(new int[] {0});
            return Optional.of(tokenizer);
        } catch (IllegalArgumentException | RefusedRequestException | LogSetupException e) {
            without.accept(e.getMessage());
            return Optional.empty();
        }
    }

    /** Of any run: a task that is no text has symbols of its own. */
    public static Optional<Tokenizer> of(
            MillraceConfig config, Optional<LogConnection> connection, Consumer<String> without) {
        return config.task() instanceof TextTask
                ? ofText(config, connection, without)
                : Optional.of(config.task().task().tokenizer());
    }
}
