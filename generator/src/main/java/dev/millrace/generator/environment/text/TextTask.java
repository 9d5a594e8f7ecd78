package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import dev.millrace.policy.tokenizer.TokenizerDirectory;

/**
 * Task {@code text}: the policy goes on with prompts of data, one turn each, in the vocabulary of its checkpoint.
 *
 * @param data rows with the prompts
 * @param tokenizer of the checkpoint
 * @param shuffle whether every pass over the data has an order of its own, drawn from {@code admission.task_seed}; otherwise each is in the
 *     data's own order
 * @param responseTokens longest response
 * @param files what data and tokenizer were found to be; filled where a run begins
 */
public record TextTask(
        DatasetSettings data, TokenizerSettings tokenizer, boolean shuffle, int responseTokens, TextFiles files)
        implements TaskSettings {

    public TextTask {
        if (responseTokens < 1) {
            throw new IllegalArgumentException("response_tokens must be at least 1: " + responseTokens);
        }
    }

    /** Responses of 64 tokens; data and tokenizer must be given. */
    public static TextTask defaults() {
        return new TextTask(JsonLines.defaults(), TokenizerDirectory.defaults(), true, 64, TextFiles.unknown());
    }

    @Override
    public Task task() {
        if (!files.isKnown()) {
            throw new IllegalArgumentException(
                    "task text needs data and a tokenizer; give millrace train --model DIR --data FILE");
        }
        Tokenizer tokens = new RecordedTokenizer(tokenizer, files);
        return new Task(
                "text",
                new TextPrompts(new RecordedDataset(data, files), tokens, shuffle),
                new TextEnvironment(files.stopTokens()),
                tokens,
                files.promptTokens(),
                responseTokens);
    }

    /**
     * The same with what its data and tokenizer are now, every prompt of them encoded once.
     *
     * @throws IllegalArgumentException if one cannot be read, or has a row that the reward could not judge; it names the place
     */
    public TextTask inspected(RewardFunction reward) {
        Dataset rows;
        try {
            rows = data.open();
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("data: " + e.getMessage(), e);
        }
        Tokenizer tokens;
        try {
            tokens = tokenizer.open();
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("tokenizer: " + e.getMessage(), e);
        }
        int longest = 0;
        for (int i = 0; i < rows.size(); i++) {
            try {
                reward.requireJudgeable(rows.row(i).state());
                longest = Math.max(longest, TextPrompts.encoded(rows, i, tokens).length);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("data: " + rows.place(i) + ": " + e.getMessage(), e);
            }
        }
        TextFiles found = new TextFiles(
                rows.hash(),
                rows.size(),
                longest,
                tokens.hash(),
                tokens.vocabSize(),
                tokens.stopTokens().stream().map(Integer::longValue).toList());
        return new TextTask(data, tokenizer, shuffle, responseTokens, found);
    }

    /**
     * Opens data and tokenizer here, so that what is missing or has changed is said at once.
     *
     * @throws IllegalArgumentException if one cannot be read or is not what the run began with
     */
    public void requireAsRecorded() {
        new RecordedDataset(data, files).requireAsRecorded();
        new RecordedTokenizer(tokenizer, files).requireAsRecorded();
    }
}
