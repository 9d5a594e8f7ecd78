package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.Sampling;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rollout being sampled: its tokens, who wrote them, under which version and with which log-prob.
 *
 * <p>Positions of the whole sequence count from the first prompt token, response positions from the first token after
 * the prompt. A token is <em>known</em> once it is in the sequence, and <em>held</em> once the engine's slot has it too;
 * known tokens that the slot does not hold yet, the prompt at first and what the environment said later, go in as
 * forced tokens.
 *
 * <p>Owned by the sampling thread.
 */
final class RunningSequence implements Transcript {
    /** In the place of a version: it is not to be sampled for now. */
    static final long STANDS = -2;

    private static final Logger LOG = LoggerFactory.getLogger(RunningSequence.class);
    private static final int LONGEST_FAILURE = 500;

    private final AcceptedPrompt prompt;
    private final int sampleIndex;
    private final Sampling sampling;
    private final Episode episode;
    private final int endToken;
    private final int maxTokens;
    private final int vocabSize;
    private final long stream;
    private final long startedAtMs;
    private final VersionSpans spans = new VersionSpans();
    private final @Nullable DrawNotes notes;
    private final ResponseTokens response;
    private @Nullable RecordedRouting routing;
    private int held;
    private long under = -1;
    private int reused;
    private boolean waits;
    private @Nullable FinishReason finishReason;
    private @Nullable String failure;
    private @Nullable RuntimeException opening; // what went wrong before the first token
    private @Nullable CompletableFuture<VerifiedReward> verdict;

    /** @param vocabSize bound of what the environment may say */
    RunningSequence(AcceptedPrompt prompt, int sampleIndex, int vocabSize, long startedAtMs) {
        this.prompt = prompt;
        this.sampleIndex = sampleIndex;
        this.sampling = prompt.sampling();
        this.notes = DrawNotes.of(sampling);
        this.episode = begun();
        this.endToken = prompt.environment().endToken();
        this.maxTokens = prompt.request().getSampling().getMaxTokens();
        this.vocabSize = vocabSize;
        this.stream = CounterBasedRandom.stream(
                prompt.request().getSampling().getSeed(), prompt.request().getOrdinal(), sampleIndex);
        this.startedAtMs = startedAtMs;
        this.response = new ResponseTokens(maxTokens);
        this.waits = episode.opens();
    }

    private Episode begun() {
        try {
            return prompt.environment()
                    .begin(new EpisodeStart(
                            rolloutId(), prompt.tokens(), prompt.request().getEnvironmentState()));
        } catch (RuntimeException e) {
            return new BrokenEpisode(e);
        }
    }

    AcceptedPrompt prompt() {
        return prompt;
    }

    int sampleIndex() {
        return sampleIndex;
    }

    Sampling sampling() {
        return sampling;
    }

    long startedAtMs() {
        return startedAtMs;
    }

    VersionSpans spans() {
        return spans;
    }

    /** Its next tokens are to be sampled by a version, or by none: {@link #STANDS}. */
    void goOnWith(long version) {
        under = version;
    }

    /** The version that is to sample its next tokens; -1 where that is of no interest. */
    long under() {
        return under;
    }

    /** Tokens that the engine's slot holds. */
    int held() {
        return held;
    }

    /** The engine's slot now holds the first {@code tokens} tokens of the sequence. */
    void hold(int tokens) {
        held = tokens;
    }

    /** So many of its first tokens need not be taken in, since they were kept of another sequence. */
    void reuse(int tokens) {
        reused = tokens;
    }

    int reused() {
        return reused;
    }

    /** Prompt and response tokens. */
    int known() {
        return prompt.tokens().length + response.length();
    }

    /** Prompt and response tokens it can have at most. */
    int limit() {
        return prompt.tokens().length + maxTokens;
    }

    /** Token at a position of the whole sequence. */
    int sequenceToken(int position) {
        int promptLength = prompt.tokens().length;
        return position < promptLength ? prompt.tokens()[position] : response.token(position - promptLength);
    }

    /** The draw that decides the token at a position of the whole sequence, the same whenever it is sampled. */
    float uniform(int position) {
        return CounterBasedRandom.uniform(stream, position - prompt.tokens().length);
    }

    /** Why it ended, or null while it goes on. */
    @Nullable
    FinishReason finishReason() {
        return finishReason;
    }

    /** Records what the next token that is {@link #sampled} was drawn from, where that is asked for. */
    void note(DecodeSteps done, int step, int slot) {
        if (notes != null) {
            notes.take(done, step, slot);
        }
    }

    /**
     * Takes the token that was sampled after all known ones.
     *
     * @param logProb under the distribution it was sampled from
     * @param temperedLogProb under the one before truncation
     * @return false if what the engine sampled after it in the same call does not belong to this rollout any more,
     *     because it ended, the environment said something, or is to be waited for
     */
    boolean sampled(int token, float logProb, float temperedLogProb, long version) {
        if (!Float.isFinite(logProb) || !Float.isFinite(temperedLogProb)) {
            throw new IllegalStateException(
                    "version " + version + " gives no finite log-prob at response position " + response.length()
                            + " of " + rolloutId() + ": " + logProb + ", tempered " + temperedLogProb
                            + "; the policy has diverged or its weights are broken");
        }
        spans.extend(
                spans.oldest().isEmpty() ? 0 : response.length(), version); // what was said before belongs to the first
        response.sampled(token, logProb, temperedLogProb);
        if (token == endToken) {
            finishReason = FinishReason.STOP;
            return false;
        }
        return stepEnvironment();
    }

    /** Whether the environment has not reacted to the newest token yet. */
    boolean waits() {
        return waits;
    }

    /**
     * Asks the environment what it does after the newest token.
     *
     * @return whether the policy goes on at once, with nothing said in between
     */
    boolean stepEnvironment() {
        StepResult result;
        try {
            if (opening != null) {
                throw opening;
            }
            result = episode.afterToken(this);
            requireInVocabulary(result.tokens());
            if (response.length() == 0) {
                requireOpening(result);
            }
        } catch (RuntimeException e) {
            waits = false;
            if (response.length() == 0) {
                opening = e; // a rollout has at least one token, and its failure is told after that
                return false;
            }
            fail("environment " + prompt.environment().name(), e);
            return false;
        }
        waits = result.later();
        if (waits) {
            return false;
        }
        boolean fits = response.fit(result.tokens().length);
        if (fits) {
            response.said(result.tokens());
        }
        if (result.ends()) {
            finishReason = FinishReason.ENVIRONMENT;
        } else if (!fits || response.isFull()) {
            finishReason = FinishReason.LENGTH;
        }
        return finishReason == null && result.tokens().length == 0;
    }

    private void requireOpening(StepResult result) {
        if (result.ends()) {
            throw new IllegalStateException("the episode was over before the policy wrote a token");
        }
        if (result.tokens().length >= maxTokens) {
            throw new IllegalStateException("it opened with " + result.tokens().length + " tokens, and a response has "
                    + maxTokens + " (max_tokens), of which the policy needs one");
        }
    }

    private void requireInVocabulary(int[] tokens) {
        for (int token : tokens) {
            if (token < 0 || token >= vocabSize) {
                throw new IllegalStateException(
                        "it said token " + token + ", which is not among the " + vocabSize + " of the vocabulary");
            }
        }
    }

    /** It ends here without a verdict, and says why. */
    private void fail(String by, Throwable cause) {
        Throwable reason = cause instanceof CompletionException && cause.getCause() != null ? cause.getCause() : cause;
        String sentence = by + ": " + (reason.getMessage() == null ? reason.toString() : reason.getMessage());
        failure = sentence.length() <= LONGEST_FAILURE ? sentence : sentence.substring(0, LONGEST_FAILURE) + "...";
        finishReason = FinishReason.FAILED;
        abandon();
    }

    /** Begins to find out what the finished response is worth, where that takes time. */
    void judge() {
        if (failure != null) {
            return;
        }
        try {
            verdict = episode.verifyLater(this)
                    .map(CompletionStage::toCompletableFuture)
                    .orElse(null);
        } catch (RuntimeException e) {
            verdict = CompletableFuture.failedFuture(e);
        }
    }

    /** Whether {@link #verdict} says so at once. */
    boolean isJudged() {
        return verdict == null || verdict.isDone();
    }

    /** The reward of the response, from its tokens; empty if nobody can say, and {@link #failure} is why. */
    Optional<VerifiedReward> verdict() {
        if (failure != null) {
            return Optional.empty();
        }
        try {
            VerifiedReward found = verdict == null ? episode.verify(this) : verdict.join();
            VerifiedCredit.require(found, mask());
            return Optional.of(found);
        } catch (RuntimeException e) {
            fail("its reward", e);
            return Optional.empty();
        }
    }

    /** What went wrong, as a sentence; null where nothing did. */
    @Nullable
    String failure() {
        return failure;
    }

    /** Nobody waits for it any more. */
    void abandon() {
        try {
            episode.abandon();
        } catch (RuntimeException e) {
            LOG.debug("the episode of {} failed as it was given up", rolloutId(), e); // it is, either way
        }
    }

    /** Cannot be played. */
    private record BrokenEpisode(RuntimeException cause) implements Episode {
        @Override
        public StepResult afterToken(Transcript response) {
            throw cause;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            throw cause;
        }
    }

    String rolloutId() {
        return prompt.request().getGroupId() + "/" + sampleIndex;
    }

    int[] responseTokens() {
        return response.tokens();
    }

    byte[] mask() {
        return response.mask();
    }

    float[] logProbs() {
        return response.logProbs();
    }

    float[] temperedLogProbs() {
        return response.temperedLogProbs();
    }

    /** What the draws were made from; null where that is not recorded. */
    @Nullable
    SamplingTrace trace() {
        SamplingTrace drawn = notes == null ? null : notes.trace();
        if (routing == null) {
            return drawn;
        }
        return drawn == null
                ? new SamplingTrace(null, null, null, routing)
                : new SamplingTrace(drawn.getTopLogProbs(), drawn.getKeptTokens(), null, routing);
    }

    /** Whether it is to be said through which experts its tokens went. */
    boolean recordsRouting() {
        return prompt.request().getSampling().getRecordRouting();
    }

    /** Says through which experts the tokens that the slot holds went. */
    void routed(RoutedExperts fed) {
        RoutedExperts all = fed.of(known() - 1);
        routing = new RecordedRouting(
                all.layers(), all.perToken(), PackedMask.of(all.ids()), PackedFloats.of(all.weights()));
    }

    @Override
    public int length() {
        return response.length();
    }

    @Override
    public int token(int position) {
        return response.token(position);
    }

    @Override
    public boolean byPolicy(int position) {
        return response.byPolicy(position);
    }
}
