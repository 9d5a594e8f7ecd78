package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.DataRow;
import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import dev.millrace.generator.sampling.CounterBasedRandom;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Task {@code text}: the policy continues with prompts of data, one turn each, in the vocabulary of its checkpoint.
 *
 * @param data rows with the prompts
 * @param tokenizer of the checkpoint
 * @param shuffle reshuffle the data on every pass, by {@code admission.task_seed}
 * @param responseTokens longest response
 * @param stop stop texts, such as {@code "\n\n"}; the reward judges the text before them
 * @param environment environment of the episodes; {@code one_turn} is a single response without one
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
                    "stop applies to environment.kind=one_turn only; leave stop out, or set environment.stop: " + stop);
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
     * Reads data and tokenizer, encodes every prompt once, and returns the task with their hashes.
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
     * Returns the task with other held-out rows, read and encoded once.
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
                requireEncodable(rows.row(i).prompt(), tokens, room);
                int length = TextPrompts.encoded(rows, i, tokens).length;
                if (length > room) {
                    throw new IllegalArgumentException("the prompt has " + length
                            + " tokens, and a response (task.response_tokens) leaves the model room for " + room
                            + "; prompts are not truncated, so shorten the prompt or leave it out");
                }
                longest = Math.max(longest, length);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException(key + ": " + rows.place(i) + ": " + e.getMessage(), e);
            }
        }
        return longest;
    }

    /** Refuses by its characters what would take memory to encode before its tokens are counted. */
    private static void requireEncodable(String prompt, Tokenizer tokens, int room) {
        int most = tokens.mostCharacters(room);
        if (prompt.length() > most) {
            throw new IllegalArgumentException("the prompt has " + prompt.length() + " characters, and the " + room
                    + " tokens that a response (task.response_tokens) leaves have at most "
                    + most + "; prompts are not truncated, so shorten the prompt or leave it out");
        }
    }

    /** The same, whose tokenizer's files lie elsewhere. */
    public TextTask with(TokenizerSettings otherPlace) {
        return new TextTask(data, otherPlace, shuffle, responseTokens, stop, environment, eval, files);
    }

    /**
     * Opens the data, so that missing or changed data is refused at start.
     *
     * @throws IllegalArgumentException if it cannot be read or is not what the run began with
     */
    public void requireDataAsRecorded() {
        new RecordedDataset(data, files.dataSha256(), "task.data").requireAsRecorded();
    }

    /**
     * Opens the tokenizer, so that missing or changed files are refused at start.
     *
     * @throws IllegalArgumentException if it cannot be read or is not what the run began with
     */
    public void requireTokenizerAsRecorded() {
        new RecordedTokenizer(tokenizer, files).requireAsRecorded();
    }

    /**
     * Opens the held-out rows, if they have data of their own.
     *
     * @throws IllegalArgumentException as {@link #requireDataAsRecorded}
     */
    public void requireHeldOutAsRecorded() {
        if (eval.isOwnData()) {
            new RecordedDataset(eval.data(), files.evalSha256(), "task.eval.data").requireAsRecorded();
        }
    }

    /**
     * Which rows are never trained on, so that a policy can be evaluated by them: those of data of their own, or a share of the task's data.
     *
     * @param data with the held-out prompts; without a file there is none
     * @param share of the task's data that is held out, at least 0 and below 1; 0 holds out none
     * @param seed of the draw of that share; the same for every run to compare
     */
    public record HeldOutRows(DatasetSettings data, double share, long seed) {

        public HeldOutRows {
            Objects.requireNonNull(data, "data");
            if (!(share >= 0 && share < 1)) {
                throw new IllegalArgumentException("share must be at least 0 and below 1: " + share);
            }
            if (share > 0 && isGiven(data)) {
                throw new IllegalArgumentException(
                        "share is " + share
                                + " and data names held-out prompts of their own; give one of the two, the other stays 0 or without a file");
            }
        }

        public static HeldOutRows defaults() {
            return new HeldOutRows(JsonLines.defaults(), 0, 0);
        }

        private static boolean isGiven(DatasetSettings data) {
            return !data.equals(JsonLines.defaults());
        }

        boolean isOwnData() {
            return isGiven(data);
        }

        /**
         * Returns how many of these rows are held out.
         *
         * @throws IllegalArgumentException if none would be left
         */
        int of(int rows) {
            if (share == 0) {
                return 0;
            }
            int held = (int) Math.max(1, Math.round(share * rows));
            if (held >= rows) {
                throw new IllegalArgumentException("share of " + share + " holds out " + held + " of " + rows
                        + " rows, so none is left to train on; give more rows, or a smaller share");
            }
            return held;
        }
    }

    /**
     * Data of a run, opened with the first row and shared in the process.
     *
     * @param sha256 of the rows that the run began with
     * @param key that names it, for a sentence
     */
    record RecordedDataset(DatasetSettings settings, String sha256, String key) implements Dataset {
        private static final Map<RecordedDataset, Dataset> OPENED = new ConcurrentHashMap<>();

        /** Reads it again, ignoring the cache. */
        void requireAsRecorded() {
            OPENED.put(this, open());
        }

        private Dataset opened() {
            return OPENED.computeIfAbsent(this, RecordedDataset::open);
        }

        private Dataset open() {
            Dataset found = settings.open();
            if (!found.hash().equals(sha256)) {
                throw new IllegalArgumentException(
                        key + ": the rows of " + settings + " differ from those the run started with (sha-256 "
                                + found.hash() + ", then " + sha256
                                + "); restore these, or name the new ones under another file name: --set " + key
                                + ".file=FILE");
            }
            return found;
        }

        @Override
        public int size() {
            return opened().size();
        }

        @Override
        public DataRow row(int index) {
            return opened().row(index);
        }

        @Override
        public String place(int index) {
            return opened().place(index);
        }

        @Override
        public String hash() {
            return sha256;
        }
    }

    /** Tokenizer of a run, opened with the first text and shared in the process; counting tokens needs no file. */
    record RecordedTokenizer(TokenizerSettings settings, TextFiles files) implements Tokenizer {
        private static final Map<RecordedTokenizer, Tokenizer> OPENED = new ConcurrentHashMap<>();

        /** Reads it again, ignoring the cache. */
        void requireAsRecorded() {
            OPENED.put(this, open());
        }

        private Tokenizer opened() {
            return OPENED.computeIfAbsent(this, RecordedTokenizer::open);
        }

        private Tokenizer open() {
            Tokenizer found = settings.open();
            if (!found.hash().equals(files.tokenizerSha256())) {
                throw new IllegalArgumentException("task.tokenizer: " + settings
                        + " is not the run's tokenizer (sha-256 " + found.hash() + ", then "
                        + files.tokenizerSha256()
                        + "); its tokens would decode to other texts, so restore that one, name the copy in the run's folder"
                        + " (--set task.tokenizer.directory=RUN/tokenizer), or start another run");
            }
            if (!found.chatHash().equals(files.chatSha256())) {
                throw new IllegalArgumentException("task.tokenizer: " + settings
                        + " has another chat template, special tokens or date than the run's; restore those, or name"
                        + " the copy in the run's folder (--set task.tokenizer.directory=RUN/tokenizer)");
            }
            return found;
        }

        @Override
        public int vocabSize() {
            return files.vocabulary();
        }

        @Override
        public int mostCharacters(int tokens) {
            return opened().mostCharacters(tokens);
        }

        @Override
        public int[] encode(String text) {
            return opened().encode(text);
        }

        @Override
        public int[] encode(List<ChatMessage> messages) {
            return opened().encode(messages);
        }

        @Override
        public String render(Conversation conversation) {
            return opened().render(conversation);
        }

        @Override
        public int[] encodeRendered(String text) {
            return opened().encodeRendered(text);
        }

        @Override
        public String chatHash() {
            return files.chatSha256();
        }

        @Override
        public String decode(int[] tokens) {
            return opened().decode(tokens);
        }

        @Override
        public String text(int[] tokens) {
            return opened().text(tokens);
        }

        @Override
        public List<Integer> stopTokens() {
            return files.stopTokens().stream().map(Math::toIntExact).toList();
        }

        @Override
        public String hash() {
            return files.tokenizerSha256();
        }
    }

    /**
     * One turn of text that ends with a stop token, a stop text or the token limit, without a reward of its own. The
     * state is the row without its prompt, a JSON object.
     *
     * @param stopTokens that end a response
     * @param stopTexts that end it, wherever tokens begin and end
     * @param tokenizer of the response
     */
    record TextEnvironment(List<Long> stopTokens, List<String> stopTexts, Tokenizer tokenizer) implements Environment {
        @Override
        public String name() {
            return "text";
        }

        @Override
        public int endToken() {
            return stopTokens.size() == 1 ? Math.toIntExact(stopTokens.get(0)) : -1; // of several, the episode knows
        }

        @Override
        public Episode begin(String state) {
            RowState.parse(state);
            return new Turn(
                    new StopRule(stopTokens.stream().mapToInt(Math::toIntExact).toArray(), stopTexts, tokenizer));
        }

        private record Turn(StopRule stop) implements Episode {

            @Override
            public StepResult afterToken(Transcript response) {
                return stop.endsAt(response) ? StepResult.END : StepResult.GO_ON;
            }

            @Override
            public VerifiedReward verify(Transcript response) {
                return new VerifiedReward(0, Map.of());
            }
        }
    }

    /**
     * Rows of data, pass after pass. A position's row follows from seed, position and number of rows, so a resumed
     * run continues with the same rows.
     */
    static final class TextPrompts implements PromptDataset {
        private static final long ORDER = 0x6F72646572L; // a stream that no sample draws from

        private final Dataset data;
        private final Tokenizer tokenizer;
        private final boolean shuffle;
        private @Nullable Pass pass;

        TextPrompts(Dataset data, Tokenizer tokenizer, boolean shuffle) {
            this.data = data;
            this.tokenizer = tokenizer;
            this.shuffle = shuffle;
        }

        @Override
        public Prompt prompt(long seed, long ordinal) {
            int rows = data.size();
            int place = (int) (ordinal % rows);
            int row = shuffle ? order(seed, ordinal / rows)[place] : place;
            return new Prompt(encoded(data, row, tokenizer), data.row(row).state());
        }

        static int[] encoded(Dataset data, int index, Tokenizer tokenizer) {
            DataRow row = data.row(index);
            int[] tokens = row.messages().isEmpty() ? tokenizer.encode(row.prompt()) : tokenizer.encode(row.messages());
            if (tokens.length == 0) {
                throw new IllegalArgumentException("the prompt has no token: '"
                        + (row.messages().isEmpty() ? row.prompt() : row.messages()) + "'");
            }
            return tokens;
        }

        private synchronized int[] order(long seed, long number) {
            Pass now = pass;
            if (now == null || now.seed() != seed || now.number() != number) {
                now = new Pass(
                        seed,
                        number,
                        CounterBasedRandom.permutation(CounterBasedRandom.stream(seed, number, ORDER), data.size()));
                pass = now;
            }
            return now.order();
        }

        /** One pass over the data; the last one is kept, since positions come one after the other. */
        private record Pass(long seed, long number, int[] order) {}
    }

    /**
     * Hashes of data and tokenizer at the start of a run. Other processes of the run compare theirs and name a difference. It is
     * filled where the run begins; nobody needs to write it.
     *
     * @param dataSha256 of all rows of the data
     * @param rows how many of them are trained on
     * @param evalSha256 of all rows of a file of held-out prompts; empty where there is none
     * @param evalRows how many rows are held out
     * @param promptTokens of the longest prompt, held-out ones included
     * @param tokenizerSha256 of all that decides which tokens a text has
     * @param chatSha256 of all that decides how a conversation becomes text; empty without a chat template
     * @param vocabulary tokens of the model
     * @param stopTokens that end a response
     * @param contents the tokenizer's files, which lie on the run's log: of each the SHA-256 and the name, as {@code sha256sum} writes them;
     *     empty where the tokenizer is a plug-in's
     */
    public record TextFiles(
            String dataSha256,
            int rows,
            String evalSha256,
            int evalRows,
            int promptTokens,
            String tokenizerSha256,
            String chatSha256,
            int vocabulary,
            List<Long> stopTokens,
            List<String> contents) {

        public TextFiles {
            stopTokens = List.copyOf(stopTokens);
            contents = List.copyOf(contents);
        }

        /** Nothing found yet. */
        public static TextFiles unknown() {
            return new TextFiles("", 0, "", 0, 0, "", "", 0, List.of(), List.of());
        }

        boolean isKnown() {
            return rows > 0 && promptTokens > 0 && vocabulary > 1;
        }
    }
}
