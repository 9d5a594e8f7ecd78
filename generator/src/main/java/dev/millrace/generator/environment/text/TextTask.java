package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Task {@code text}: the policy goes on with prompts of data, one turn each, in the vocabulary of its checkpoint.
 *
 * @param data rows with the prompts
 * @param tokenizer of the checkpoint
 * @param shuffle whether every pass over the data has an order of its own, drawn from {@code admission.task_seed}; otherwise each is in the
 *     data's own order
 * @param responseTokens longest response
 * @param stop texts that end a response as its stop tokens do, such as {@code "\n\n"}; the reward judges what stands before
 * @param environment what the policy plays with, turn by turn; {@code one_turn} is nobody, and a response is one turn of text
 * @param eval rows that are not trained on
 * @param files what data and tokenizer were found to be; filled where a run begins
 */
public record TextTask(
        DatasetSettings data,
        TokenizerSettings tokenizer,
        boolean shuffle,
        int responseTokens,
        List<String> stop,
        Environment environment,
        HeldOutRows eval,
        TextFiles files)
        implements TaskSettings {

    public TextTask {
        stop = List.copyOf(stop);
        if (stop.contains("")) {
            throw new IllegalArgumentException("stop must have texts of at least one character: one is empty");
        }
        if (!stop.isEmpty() && !(environment instanceof OneTurn)) {
            throw new IllegalArgumentException(
                    "stop ends responses of one turn, and environment.kind is another than one_turn,"
                            + " which ends them itself; leave stop out, or name what ends a turn in environment.stop: "
                            + stop);
        }
        if (responseTokens < 1) {
            throw new IllegalArgumentException("response_tokens must be at least 1: " + responseTokens);
        }
    }

    /** Responses of 64 tokens; data and tokenizer must be given. */
    public static TextTask defaults() {
        return new TextTask(
                JsonLines.defaults(),
                TokenizerDirectory.defaults(),
                true,
                64,
                List.of(),
                new OneTurn(),
                HeldOutRows.defaults(),
                TextFiles.unknown());
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
                new TextPrompts(trained(), tokens, shuffle),
                isOneTurn() ? new TextEnvironment(files.stopTokens(), stop, tokens) : environment,
                tokens,
                files.promptTokens(),
                responseTokens,
                heldOut().map(rows -> new TextPrompts(rows, tokens, true)));
    }

    /** Whether there is nobody to play with, so that a reward must judge what the policy wrote. */
    public boolean isOneTurn() {
        return environment instanceof OneTurn;
    }

    private Dataset recorded() {
        return new RecordedDataset(data, files.dataSha256(), "task.data");
    }

    private Dataset trained() {
        return eval.share() > 0 ? side(recorded(), files.rows(), files.evalRows(), false) : recorded();
    }

    private Optional<Dataset> heldOut() {
        if (files.evalRows() == 0) {
            return Optional.empty();
        }
        return Optional.of(
                eval.isOwnData()
                        ? new RecordedDataset(eval.data(), files.evalSha256(), "task.eval.data")
                        : side(recorded(), files.rows(), files.evalRows(), true));
    }

    private Dataset side(Dataset all, int trained, int heldOut, boolean held) {
        return new Rows(all, eval.seed(), trained + heldOut, heldOut, held);
    }

    /**
     * The same with what its data and tokenizer are now, every prompt of them encoded once.
     *
     * @param positions of the model, in which a prompt and its response must lie
     * @param maxTokens that a response is allowed; 0 for as many as the task has
     * @throws IllegalArgumentException if one cannot be read, or has a row that the reward could not judge or that is too long; it names
     *     the place
     */
    public TextTask inspected(RewardFunction reward, int positions, int maxTokens) {
        int room = positions - (maxTokens > 0 ? maxTokens : responseTokens);
        Dataset rows = opened("data", data::open);
        Optional<Dataset> own =
                eval.isOwnData() ? Optional.of(opened("eval.data", eval.data()::open)) : Optional.empty();
        Tokenizer tokens = opened("tokenizer", tokenizer::open);
        int longest = longest("data", rows, reward, tokens, room);
        if (own.isPresent()) {
            longest = Math.max(longest, longest("eval.data", own.get(), reward, tokens, room));
        }
        int held = own.map(Dataset::size).orElseGet(() -> opened("eval", () -> eval.of(rows.size())));
        TextFiles found = new TextFiles(
                rows.hash(),
                own.isPresent() ? rows.size() : rows.size() - held,
                own.map(Dataset::hash).orElse(""),
                held,
                longest,
                tokens.hash(),
                tokens.chatHash(),
                tokens.vocabSize(),
                tokens.stopTokens().stream().map(Integer::longValue).toList(),
                tokenizer instanceof TokenizerDirectory folder ? opened("tokenizer", folder::contents) : List.of());
        return new TextTask(data, tokenizer, shuffle, responseTokens, stop, environment, eval, found);
    }

    /**
     * The same with other held-out rows, which are read and encoded once; what else the task is of stays as it was found.
     *
     * @param positions in which a prompt and its response must lie
     * @param maxTokens that a response is allowed; 0 for as many as the task has
     * @throws IllegalArgumentException as {@link #inspected}
     */
    public TextTask holdingOut(DatasetSettings other, RewardFunction reward, int positions, int maxTokens) {
        Dataset rows = opened("eval.data", other::open);
        int room = positions - (maxTokens > 0 ? maxTokens : responseTokens);
        int longest = longest("eval.data", rows, reward, new RecordedTokenizer(tokenizer, files), room);
        TextFiles found = new TextFiles(
                files.dataSha256(),
                files.rows(),
                rows.hash(),
                rows.size(),
                Math.max(files.promptTokens(), longest),
                files.tokenizerSha256(),
                files.chatSha256(),
                files.vocabulary(),
                files.stopTokens(),
                files.contents());
        return new TextTask(
                data,
                tokenizer,
                shuffle,
                responseTokens,
                stop,
                environment,
                new HeldOutRows(other, 0, eval.seed()),
                found);
    }

    private static <T> T opened(String key, Supplier<T> open) {
        try {
            return open.get();
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(key + (key.equals("eval") ? "." : ": ") + e.getMessage(), e);
        }
    }

    private static int longest(String key, Dataset rows, RewardFunction reward, Tokenizer tokens, int room) {
        int longest = 0;
        for (int i = 0; i < rows.size(); i++) {
            try {
                reward.requireJudgeable(rows.row(i).state());
                int length = TextPrompts.encoded(rows, i, tokens).length;
                if (length > room) {
                    throw new IllegalArgumentException("the prompt has " + length
                            + " tokens, and beside a response (task.response_tokens) the model has room for " + room
                            + "; nothing is cut, so shorten the prompt or leave it out");
                }
                longest = Math.max(longest, length);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException(key + ": " + rows.place(i) + ": " + e.getMessage(), e);
            }
        }
        return longest;
    }

    /** The same, whose tokenizer's files lie elsewhere. */
    public TextTask with(TokenizerSettings otherPlace) {
        return new TextTask(data, otherPlace, shuffle, responseTokens, stop, environment, eval, files);
    }

    /**
     * Opens the data here, so that what is missing or has changed is said at once.
     *
     * @throws IllegalArgumentException if it cannot be read or is not what the run began with
     */
    public void requireDataAsRecorded() {
        new RecordedDataset(data, files.dataSha256(), "task.data").requireAsRecorded();
    }

    /**
     * Opens the tokenizer here, so that what is missing or has changed is said at once.
     *
     * @throws IllegalArgumentException if it cannot be read or is not what the run began with
     */
    public void requireTokenizerAsRecorded() {
        new RecordedTokenizer(tokenizer, files).requireAsRecorded();
    }

    /**
     * Opens the held-out rows here, where there are any of their own.
     *
     * @throws IllegalArgumentException as {@link #requireDataAsRecorded}
     */
    public void requireHeldOutAsRecorded() {
        if (eval.isOwnData()) {
            new RecordedDataset(eval.data(), files.evalSha256(), "task.eval.data").requireAsRecorded();
        }
    }
}
