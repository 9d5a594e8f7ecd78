package dev.millrace.generator.environment.text;

import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A run's tokenizer, opened when the first text is asked for, and then for the whole process: who only counts tokens or compares
 * vocabularies needs none of its files.
 */
record RecordedTokenizer(TokenizerSettings settings, TextFiles files) implements Tokenizer {
    private static final Map<RecordedTokenizer, Tokenizer> OPENED = new ConcurrentHashMap<>();

    /** Reads it now, whatever was read before. */
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
                    + " is another tokenizer than the one the run began with (sha-256 " + found.hash() + ", then "
                    + files.tokenizerSha256()
                    + "); its tokens would mean other texts, so put that one back, name the copy in the run's folder"
                    + " (--set task.tokenizer.directory=RUN/tokenizer), or begin another run");
        }
        if (!found.chatHash().equals(files.chatSha256())) {
            throw new IllegalArgumentException("task.tokenizer: " + settings
                    + " has another chat template, special tokens or date than the run began with; put those back, or name"
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
