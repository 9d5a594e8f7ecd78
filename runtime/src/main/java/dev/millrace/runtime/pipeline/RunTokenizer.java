package dev.millrace.runtime.pipeline;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.Optional;
import java.util.function.Consumer;

/** Finds the tokenizer that turns a run's tokens into text for readers. */
public final class RunTokenizer {
    private RunTokenizer() {}

    /**
     * Tokenizer of a run on text if its files are readable; empty otherwise.
     *
     * @param connection log with the files; empty for an archive, and for a folder that has them
     * @param without receives the reason for missing text, as a clause
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

    /** Tokenizer of any run: other tasks have their own symbols. */
    public static Optional<Tokenizer> of(
            MillraceConfig config, Optional<LogConnection> connection, Consumer<String> without) {
        return config.task() instanceof TextTask
                ? ofText(config, connection, without)
                : Optional.of(config.task().task().tokenizer());
    }
}
