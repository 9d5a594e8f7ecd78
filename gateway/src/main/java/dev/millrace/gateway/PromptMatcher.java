package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.schemas.packed.PackedInts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Finds out which turn of a session a prompt continues from, and which tokens it adds.
 *
 * <p>A prompt continues from a turn if its text begins with the whole text to the end of that turn, or its token ids with all ids to
 * there. Of the text behind alone tokens are made; those before are kept, a stop token that a template would not write among them. What the policy said is put into the rendered text as it was
 * sampled, since a template may trim or reformat it: of a message of the assistant that is a turn's answer unchanged the
 * template sees only a mark.
 *
 * <p>Immutable and thread-safe.
 */
final class PromptMatcher {
    private static final char MARK = '\uE0A5';

    private final Tokenizer tokenizer;
    private final List<Integer> stopTokens;
    private final int capacityTokens;

    /** @param capacityTokens of a prompt and its answer; a text that is longer in any case is refused before it is encoded */
    PromptMatcher(Tokenizer tokenizer, List<Integer> stopTokens, int capacityTokens) {
        this.capacityTokens = capacityTokens;
        this.tokenizer = tokenizer;
        this.stopTokens = List.copyOf(stopTokens);
    }

    /** @param turns of the session, the oldest first */
    TurnPrompt match(AgentCall call, List<PlayedTurn> turns) {
        try {
            if (call.ids() != null) {
                return ofIds(call.ids(), turns);
            }
            if (call.conversation() != null) {
                return ofConversation(call.conversation(), turns);
            }
            String text = fitting(String.valueOf(call.text()));
            TurnPrompt goesOn = goesOn(text, turns);
            return goesOn != null ? goesOn : ownPrompt(tokenizer.encode(text), text, turns);
        } catch (IllegalArgumentException e) {
            throw RefusedCallException.invalid(call.isChat() ? "messages" : "prompt", String.valueOf(e.getMessage()));
        }
    }

    private TurnPrompt ofConversation(Conversation conversation, List<PlayedTurn> turns) {
        String marked = withOwnWords(conversation, turns);
        TurnPrompt goesOn = marked == null ? null : goesOn(marked, turns);
        if (goesOn != null) {
            return goesOn;
        }
        String text = fitting(tokenizer.render(conversation));
        goesOn = goesOn(text, turns);
        return goesOn != null ? goesOn : ownPrompt(tokenizer.encodeRendered(text), text, turns);
    }

    /** The rendered text with what the policy said in it as it was sampled; null where no message is an answer of its own. */
    private @Nullable String withOwnWords(Conversation conversation, List<PlayedTurn> turns) {
        List<Map<String, Object>> messages = new ArrayList<>();
        Map<String, String> words = new LinkedHashMap<>();
        for (Map<String, Object> message : conversation.messages()) {
            PlayedTurn said = "assistant".equals(message.get("role")) ? saidBy(message, turns) : null;
            if (said == null) {
                messages.add(message);
            } else {
                String mark = "" + MARK + words.size() + MARK;
                words.put(mark, said.answer().written());
                messages.add(new HashMap<>(Map.of("role", "assistant", "content", mark)));
            }
        }
        if (words.isEmpty()) {
            return null;
        }
        String text = tokenizer.render(new Conversation(messages, conversation.tools()));
        for (Map.Entry<String, String> each : words.entrySet()) {
            text = text.replace(each.getKey(), each.getValue());
        }
        return fitting(text);
    }

    private String fitting(String text) {
        int most = tokenizer.mostCharacters(capacityTokens);
        if (text.length() > most) {
            throw RefusedCallException.tooLong("the prompt has " + text.length()
                    + " characters, and one that fits into " + capacityTokens
                    + " tokens (generator.capacity_tokens) has no more than " + most + "; shorten it");
        }
        return text;
    }

    private static @Nullable PlayedTurn saidBy(Map<String, Object> message, List<PlayedTurn> turns) {
        for (int i = turns.size() - 1; i >= 0; i--) {
            if (turns.get(i).answer().isSaidBy(message)) {
                return turns.get(i);
            }
        }
        return null;
    }

    private @Nullable TurnPrompt goesOn(String text, List<PlayedTurn> turns) {
        List<PlayedTurn> longestFirst = turns.stream()
                .filter(turn ->
                        turn.record().getTextCharacters() >= 0 && turn.record().getTextCharacters() <= text.length())
                .sorted(Comparator.comparingInt(
                                (PlayedTurn turn) -> turn.record().getTextCharacters())
                        .thenComparingInt(turn -> turn.record().getTurn())
                        .reversed())
                .toList();
        for (PlayedTurn turn : longestFirst) {
            int end = turn.record().getTextCharacters();
            if (end == text.length() && turn.answer().written().isEmpty()) {
                continue; // the turn's own prompt once more: its answer has no text by which the caller could show that
                // it continues
            }
            if (DigestUtils.sha256Hex(text.substring(0, end))
                    .equals(turn.record().getTextSha256())) {
                String behind = withoutStop(turn, text.substring(end));
                int[] context = behind.isEmpty() ? new int[0] : tokenizer.encodeRendered(behind);
                return after(turn, context, text);
            }
        }
        return null;
    }

    /** The stop token is among the turn's tokens already, where the template writes it too. */
    private String withoutStop(PlayedTurn turn, String behind) {
        int[] sampled = PackedInts.toArray(turn.record().getSampledTokens());
        int last = sampled[sampled.length - 1];
        String stop = stopTokens.contains(last) ? tokenizer.decode(new int[] {last}) : "";
        return behind.startsWith(stop) ? behind.substring(stop.length()) : behind;
    }

    private TurnPrompt ofIds(int[] ids, List<PlayedTurn> turns) {
        for (int i = 0; i < ids.length; i++) {
            if (ids[i] < 0 || ids[i] >= tokenizer.vocabSize()) {
                throw new IllegalArgumentException("token " + ids[i] + " at " + i + " is not among the "
                        + tokenizer.vocabSize() + " of the vocabulary");
            }
        }
        PlayedTurn longest = null;
        int length = -1;
        for (PlayedTurn turn : turns) {
            int[] before = turn.tokens();
            if (before.length >= length && before.length <= ids.length && common(before, ids) == before.length) {
                longest = turn;
                length = before.length;
            }
        }
        return longest == null
                ? ownPrompt(ids, null, turns)
                : after(longest, Arrays.copyOfRange(ids, length, ids.length), null);
    }

    private static TurnPrompt after(PlayedTurn parent, int[] context, @Nullable String text) {
        int[] before = parent.tokens();
        int[] tokens = Arrays.copyOf(before, before.length + context.length);
        System.arraycopy(context, 0, tokens, before.length, context.length);
        return new TurnPrompt(parent, context, tokens, text, -1, 0);
    }

    private static TurnPrompt ownPrompt(int[] tokens, @Nullable String text, List<PlayedTurn> turns) {
        int forkTurn = -1;
        int forkPosition = 0;
        for (PlayedTurn turn : turns) {
            int common = common(turn.tokens(), tokens);
            if (forkTurn < 0 || common > forkPosition) {
                forkTurn = turn.record().getTurn();
                forkPosition = common;
            }
        }
        return new TurnPrompt(null, tokens, tokens, text, forkTurn, forkPosition);
    }

    private static int common(int[] a, int[] b) {
        int mismatch = Arrays.mismatch(a, b);
        return mismatch < 0 ? a.length : mismatch;
    }

    /** The conversation's text to the end of an answer to this prompt, without its stop token; null where there is no text. */
    @Nullable
    String textAfter(TurnPrompt prompt, int[] sampled) {
        return prompt.text() == null ? null : prompt.text() + GivenAnswer.written(sampled, tokenizer, stopTokens);
    }

    /** What a caller is given of sampled tokens: their text up to the stop token, or up to the first stop text. */
    String given(int[] sampled, List<String> stopTexts) {
        String text = GivenAnswer.written(sampled, tokenizer, stopTokens);
        int end = text.length();
        for (String stop : stopTexts) {
            int at = text.indexOf(stop);
            end = at < 0 ? end : Math.min(end, at);
        }
        return text.substring(0, end);
    }
}
