package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.generator.sampling.CounterBasedRandom;
import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnEngine.TokenListener;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.TokenUsage;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.rollout.ComparedDistribution;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntFunction;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Plays one call: finds the turn that its prompt continues, has it answered, and logs the answer before returning.
 * Blocks the caller's thread. Thread-safe.
 */
final class TurnPlayer {
    private final TurnEngine engine;
    private final SessionLog log;
    private final Tokenizer tokenizer;
    private final ToolFormat tools;
    private final GatewayConfig config;
    private final SessionFence fence;
    private final GatewayMeters meters;
    private final Clock clock;

    TurnPlayer(SessionContext context) {
        this.engine = context.engine();
        this.log = context.log();
        this.tokenizer = context.tokenizer();
        this.tools = context.tools();
        this.config = context.config();
        this.fence = context.fence();
        this.meters = context.meters();
        this.clock = context.clock();
    }

    /**
     * @param listeners receives the tokens of each choice
     * @return one turn per choice
     * @throws RefusedCallException if it cannot be answered
     */
    List<PlayedTurn> play(Session session, AgentCall call, IntFunction<TokenListener> listeners) {
        long receivedAtMs = clock.millis();
        long begun = System.nanoTime();
        session.enter(receivedAtMs, config.turns());
        try {
            fence.requireTakenUp(session, config.turnTimeoutMs(), receivedAtMs);
            List<PlayedTurn> again = answeredBefore(session, call);
            if (!again.isEmpty()) {
                return again;
            }
            List<Integer> stops = StopTokens.of(session.sample().prompt(), tokenizer);
            PromptMatcher matcher = matcher(stops);
            TurnPrompt prompt = matcher.match(call, session.turns());
            SamplingParameters sampling = sampling(session, call, prompt);
            List<CompletableFuture<SampledTurn>> asked = new ArrayList<>();
            long engineBegun = System.nanoTime();
            List<Integer> numbers = new ArrayList<>();
            for (int choice = 0; choice < call.choices(); choice++) {
                int number = session.takeNumber();
                numbers.add(number);
                asked.add(engine.sample(
                        new TurnOrder(
                                prompt.tokens(),
                                SamplingParameters.newBuilder(sampling)
                                        .setSeed(seed(session, call, number, choice))
                                        .build(),
                                stops,
                                call.sampling().stop(),
                                session.sample().prompt().request().getAdmittedVersion()),
                        listeners.apply(choice)));
            }
            List<SampledTurn> sampled = answered(asked);
            long engineNanos = System.nanoTime() - engineBegun;
            long acknowledging = System.nanoTime();
            Matched matched = new Matched(call, matcher, prompt, sampling, receivedAtMs);
            List<PlayedTurn> played = recorded(session, matched, sampled, numbers);
            meters.call(System.nanoTime() - begun, engineNanos, System.nanoTime() - acknowledging);
            return played;
        } finally {
            session.leave(clock.millis());
        }
    }

    private PromptMatcher matcher(List<Integer> stops) {
        return new PromptMatcher(tokenizer, stops, engine.capacityTokens());
    }

    /** The prompt that {@link #play} would continue with. */
    TurnPrompt prompt(Session session, AgentCall call) {
        return matcher(StopTokens.of(session.sample().prompt(), tokenizer)).match(call, session.turns());
    }

    /** A retried call was answered by the turns with its hash. */
    private static List<PlayedTurn> answeredBefore(Session session, AgentCall call) {
        if (!call.repeated()) {
            return List.of();
        }
        List<PlayedTurn> same = session.turns().stream()
                .filter(turn -> turn.record().getRequestSha256().equals(call.sha256()))
                .toList();
        return same.size() < call.choices() ? List.of() : same.subList(same.size() - call.choices(), same.size());
    }

    /** The agent's seed alone if given; otherwise distinct draws per turn and sample. */
    private static long seed(Session session, AgentCall call, int number, int choice) {
        AcceptedPrompt prompt = session.sample().prompt();
        return call.sampling().seed().isPresent()
                ? CounterBasedRandom.stream(call.sampling().seed().getAsLong(), 0, choice)
                : CounterBasedRandom.stream(
                        CounterBasedRandom.stream(
                                prompt.request().getSampling().getSeed(),
                                prompt.request().getOrdinal(),
                                session.sample().index()),
                        1,
                        number);
    }

    private SamplingParameters sampling(Session session, AgentCall call, TurnPrompt prompt) {
        SamplingParameters ofRun = session.sample().prompt().request().getSampling();
        SamplingParameters wanted = session.sampling().orElse(ofRun);
        if (config.sampling() == SamplingSource.AGENT) {
            boolean isFirst = session.sampling().isEmpty();
            wanted = SamplingParameters.newBuilder(wanted)
                    .setTemperature(
                            agreed("temperature", call.sampling().temperature(), wanted.getTemperature(), isFirst))
                    .setTopP(agreed("top_p", call.sampling().topP(), wanted.getTopP(), isFirst))
                    .setTopK((int) agreed("top_k", ofInt(call.sampling().topK()), wanted.getTopK(), isFirst))
                    .setMinP(agreed("min_p", call.sampling().minP(), wanted.getMinP(), isFirst))
                    .build();
        }
        requireRange(wanted);
        int room = engine.capacityTokens() - prompt.tokens().length;
        if (room < 1) {
            throw RefusedCallException.tooLong("the prompt has " + prompt.tokens().length
                    + " tokens, and with an answer it must not have more than " + engine.capacityTokens()
                    + " (generator.capacity_tokens); shorten it");
        }
        SamplingParameters sampling = SamplingParameters.newBuilder(wanted)
                .setKeepSamplingMask(ofRun.getKeepSamplingMask() && ComparedDistribution.isTruncated(wanted))
                .setTopLogProbs(ofRun.getTopLogProbs())
                .setMaxTokens(Math.min(room, call.sampling().maxTokens().orElse(ofRun.getMaxTokens())))
                .build();
        requireEngineCan(call, sampling);
        return sampling;
    }

    private void requireEngineCan(AgentCall call, SamplingParameters sampling) {
        engine.refusal(sampling).ifPresent(refusal -> {
            throw RefusedCallException.unsupported(refusal.substring(0, refusal.indexOf(' ')), refusal);
        });
        if (call.sampling().seed().isPresent() && !engine.isSeeded()) {
            throw RefusedCallException.unsupported(
                    "seed",
                    "seed is not supported by the engine behind this gateway ("
                            + engine.identity().getName() + "); leave it out");
        }
    }

    private static OptionalDouble ofInt(OptionalInt value) {
        return value.isPresent() ? OptionalDouble.of(value.getAsInt()) : OptionalDouble.empty();
    }

    private static double agreed(String name, OptionalDouble asked, double before, boolean isFirst) {
        if (!isFirst && asked.isPresent() && asked.getAsDouble() != before) {
            throw RefusedCallException.invalid(
                    name,
                    name + " must be " + before
                            + " in all calls of this session, as in its first, since a rollout has one set of"
                            + " sampling parameters: "
                            + asked.getAsDouble());
        }
        return asked.orElse(before);
    }

    private static void requireRange(SamplingParameters sampling) {
        if (!((float) sampling.getTemperature() > 0 && (float) sampling.getTemperature() < Float.POSITIVE_INFINITY)) {
            throw RefusedCallException.invalid(
                    "temperature",
                    "temperature must be above 0 to train on the sample: " + sampling.getTemperature()
                            + "; leave it out, or let the run say it for all agents (gateway.sampling=run)");
        }
        if (!((float) sampling.getTopP() > 0 && sampling.getTopP() <= 1)) {
            throw RefusedCallException.invalid("top_p", "top_p must be above 0 and at most 1: " + sampling.getTopP());
        }
        if (!(sampling.getMinP() >= 0 && sampling.getMinP() <= 1)) {
            throw RefusedCallException.invalid(
                    "min_p", "min_p must be at least 0 and at most 1: " + sampling.getMinP());
        }
    }

    private List<SampledTurn> answered(List<CompletableFuture<SampledTurn>> asked) {
        List<SampledTurn> answers = new ArrayList<>();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(config.turnTimeoutMs());
        try {
            for (CompletableFuture<SampledTurn> each : asked) {
                answers.add(each.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS));
            }
            return answers;
        } catch (TimeoutException e) {
            throw RefusedCallException.notNow(
                    "timeout",
                    "the engine did not answer within " + config.turnTimeoutMs() + " ms (gateway.turn_timeout_ms)");
        } catch (ExecutionException | CancellationException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw cause instanceof IllegalArgumentException
                    ? RefusedCallException.invalid(null, String.valueOf(cause.getMessage()))
                    : RefusedCallException.notNow("engine", String.valueOf(cause.getMessage()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw RefusedCallException.notNow("closing", "the gateway is being closed");
        } finally {
            asked.forEach(each -> each.cancel(false)); // abandoned ones
        }
    }

    private record Matched(
            AgentCall call, PromptMatcher matcher, TurnPrompt prompt, SamplingParameters sampling, long receivedAtMs) {}

    private List<PlayedTurn> recorded(
            Session session, Matched matched, List<SampledTurn> sampled, List<Integer> numbers) {
        TurnPrompt prompt = matched.prompt();
        List<SessionTurn> records = new ArrayList<>();
        List<CompletableFuture<Void>> acknowledged = new ArrayList<>();
        for (int choice = 0; choice < sampled.size(); choice++) {
            BranchReason fork = choice > 0 ? BranchReason.RETRY : session.forkOf(prompt);
            SessionTurn record = record(matched, sampled.get(choice), numbers.get(choice), fork);
            records.add(record);
            acknowledged.add(log.played(session, record, clock.millis()));
        }
        CompletableFuture<Void> written = CompletableFuture.allOf(acknowledged.toArray(CompletableFuture[]::new));
        SessionFence.await(written.thenCompose(done -> fence.confirm(session)), config.turnTimeoutMs());
        List<Integer> stops = StopTokens.of(session.sample().prompt(), tokenizer);
        List<PlayedTurn> played = new ArrayList<>();
        for (SessionTurn record : records) {
            PlayedTurn turn = new PlayedTurn(
                    record, prompt.parent(), GivenAnswer.of(session.id().text(), record, tokenizer, stops, tools));
            session.add(turn);
            played.add(turn);
            meters.turn(record.getForkReason() != null);
        }
        return played;
    }

    private SessionTurn record(Matched matched, SampledTurn sampled, int number, @Nullable BranchReason fork) {
        AgentCall call = matched.call();
        TurnPrompt prompt = matched.prompt();
        String given = matched.matcher().given(sampled.tokens(), call.sampling().stop());
        boolean callsTools = call.hasTools()
                && sampled.finishReason() == FinishReason.STOP
                && tools.read(given).isPresent();
        String textAfter = matched.matcher().textAfter(prompt, sampled.tokens());
        return SessionTurn.newBuilder()
                .setTurn(number)
                .setParentTurn(
                        prompt.parent() == null ? -1 : prompt.parent().record().getTurn())
                .setForkReason(fork)
                .setForkTurn(prompt.forkTurn())
                .setForkPosition(prompt.forkPosition())
                .setContextTokens(PackedInts.of(prompt.context()))
                .setSampledTokens(PackedInts.of(sampled.tokens()))
                .setBehaviorLogProbs(PackedFloats.of(sampled.logProbs().sampled()))
                .setLogProbDistribution(sampled.logProbs().distribution())
                .setTemperedLogProbs(
                        sampled.logProbs().tempered().length == 0
                                ? null
                                : PackedFloats.of(sampled.logProbs().tempered()))
                .setSampling(matched.sampling())
                .setVersionSpans(sampled.spans())
                .setSamplingTrace(sampled.trace())
                .setFinishReason(callsTools ? FinishReason.TOOL_CALLS : sampled.finishReason())
                .setReceivedAtMs(matched.receivedAtMs())
                .setStartedAtMs(sampled.times().startedAtMs())
                .setFirstTokenAtMs(sampled.times().firstTokenAtMs())
                .setFinishedAtMs(sampled.times().finishedAtMs())
                .setUsage(new TokenUsage(
                        prompt.tokens().length,
                        sampled.tokens().length,
                        sampled.cachedTokens() < 0 ? null : sampled.cachedTokens()))
                .setText(given)
                .setTextCharacters(textAfter == null ? -1 : textAfter.length())
                .setTextSha256(textAfter == null ? "" : DigestUtils.sha256Hex(textAfter))
                .setRequestSha256(call.sha256())
                .build();
    }

    /**
     * Finds the turn that a prompt continues, and its new tokens.
     *
     * <p>A prompt continues a turn if it begins with the turn's whole text or ids. Only the remaining text is encoded;
     * earlier tokens are kept. Unchanged assistant messages are replaced by a mark while rendering, and by the sampled
     * text afterwards, since a template may reformat them. Immutable and thread-safe.
     */
    static final class PromptMatcher {
        private static final char MARK = '\uE0A5';

        private final Tokenizer tokenizer;
        private final List<Integer> stopTokens;
        private final int capacityTokens;

        /** @param capacityTokens of prompt and answer; longer texts are refused before encoding */
        PromptMatcher(Tokenizer tokenizer, List<Integer> stopTokens, int capacityTokens) {
            this.capacityTokens = capacityTokens;
            this.tokenizer = tokenizer;
            this.stopTokens = List.copyOf(stopTokens);
        }

        /** @param turns oldest first */
        TurnPrompt match(AgentCall call, List<PlayedTurn> turns) {
            try {
                if (call.prompt().ids() != null) {
                    return ofIds(call.prompt().ids(), turns);
                }
                if (call.prompt().conversation() != null) {
                    return ofConversation(call.prompt().conversation(), turns);
                }
                String text = fitting(String.valueOf(call.prompt().text()));
                TurnPrompt goesOn = goesOn(text, turns);
                return goesOn != null ? goesOn : ownPrompt(tokenizer.encode(text), text, turns);
            } catch (IllegalArgumentException e) {
                throw RefusedCallException.invalid(
                        call.isChat() ? "messages" : "prompt", String.valueOf(e.getMessage()));
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

        /** Rendered text with sampled answers; null without one. */
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
                        + " tokens (generator.capacity_tokens) has at most " + most + "; shorten it");
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
                    .filter(turn -> turn.record().getTextCharacters() >= 0
                            && turn.record().getTextCharacters() <= text.length())
                    .sorted(Comparator.comparingInt(
                                    (PlayedTurn turn) -> turn.record().getTextCharacters())
                            .thenComparingInt(turn -> turn.record().getTurn())
                            .reversed())
                    .toList();
            for (PlayedTurn turn : longestFirst) {
                int end = turn.record().getTextCharacters();
                if (end == text.length() && turn.answer().written().isEmpty()) {
                    continue; // the turn's own prompt again: without answer text nothing shows that it continues
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

        /** Removes a stop token that the turn has already. */
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
            return new TurnPrompt(parent, context, PlayedTurn.joined(parent.tokens(), context), text, -1, 0);
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

        /** Length of the common prefix. */
        static int common(int[] a, int[] b) {
            int mismatch = Arrays.mismatch(a, b);
            return mismatch < 0 ? a.length : mismatch;
        }

        /** Text to the end of an answer without stop token; null without text. */
        @Nullable
        String textAfter(TurnPrompt prompt, int[] sampled) {
            return prompt.text() == null ? null : prompt.text() + GivenAnswer.written(sampled, tokenizer, stopTokens);
        }

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

    static final class StopTokens {
        private StopTokens() {}

        /** The tokenizer's, else the environment's. */
        static List<Integer> of(AcceptedPrompt prompt, Tokenizer tokenizer) {
            if (!tokenizer.stopTokens().isEmpty()) {
                return tokenizer.stopTokens();
            }
            int end = prompt.environment().endToken();
            return end < 0 ? List.of() : List.of(end);
        }
    }

    /**
     * @param parent continued turn; null for a prompt of its own
     * @param context ids behind the parent's, or the whole prompt
     * @param text of all tokens; null if ids were given
     * @param forkTurn turn with the longest common prefix; -1 for none
     * @param forkPosition length of that prefix
     */
    record TurnPrompt(
            @Nullable PlayedTurn parent,
            int[] context,
            int[] tokens,
            @Nullable String text,
            int forkTurn,
            int forkPosition) {}

    /** Who sets the sampling of a session. */
    public enum SamplingSource {
        /** The agent's first call, else the run. Later calls must agree: a rollout has one sampling. */
        AGENT,
        /** The run: {@code temperature}, {@code top_p}, {@code top_k} and {@code min_p} of calls are ignored. */
        RUN
    }
}
