package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.TopTokens;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rollout being sampled: its tokens with their authors, versions and log-probs.
 *
 * <p>Sequence positions count from the first prompt token, response positions from the first token after the prompt.
 * A <em>known</em> token is in the sequence, a <em>held</em> one in the engine's slot too. Known tokens not yet held,
 * such as the prompt or the environment's text, are forced. Confined to the sampling thread.
 */
final class RunningSequence implements Transcript {
    /** Instead of a version: do not sample now. */
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

    /** @param vocabSize bound of the environment's token ids */
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

    /** Sets the version that samples the next tokens; {@link #STANDS} pauses. */
    void continueWith(long version) {
        under = version;
    }

    /** The version that samples the next tokens; -1 for any. */
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

    /** Skips the prefill of this many first tokens, which another sequence left in the cache. */
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

    int sequenceToken(int position) {
        int promptLength = prompt.tokens().length;
        return position < promptLength ? prompt.tokens()[position] : response.token(position - promptLength);
    }

    /** The random draw for the token at a position of the whole sequence; a function of the sample. */
    float uniform(int position) {
        return CounterBasedRandom.uniform(stream, position - prompt.tokens().length);
    }

    /** Why it ended, or null while it continues. */
    @Nullable
    FinishReason finishReason() {
        return finishReason;
    }

    /** Records the distribution of the next {@link #sampled} token, if the request asks for it. */
    void note(DecodeSteps done, int step, int slot) {
        if (notes != null) {
            notes.take(done, step, slot);
        }
    }

    /**
     * Appends a sampled token.
     *
     * @param temperedLogProb under the one before truncation
     * @return false if the engine's later tokens of the same call must be dropped: the rollout ended, or its
     *     environment reacted or is awaited
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

    /** Whether the environment still has to react to the newest token. */
    boolean waits() {
        return waits;
    }

    /**
     * Steps the environment after the newest token.
     *
     * @return whether the policy continues at once, without inserted tokens
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
            throw new IllegalStateException("the episode ended before the policy wrote a token");
        }
        if (result.tokens().length >= maxTokens) {
            throw new IllegalStateException("it opened with " + result.tokens().length + " tokens, and a response has "
                    + maxTokens + " (max_tokens), and the policy needs one");
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

    private void fail(String by, Throwable cause) {
        Throwable reason = cause instanceof CompletionException && cause.getCause() != null ? cause.getCause() : cause;
        String sentence = by + ": " + (reason.getMessage() == null ? reason.toString() : reason.getMessage());
        failure = sentence.length() <= LONGEST_FAILURE ? sentence : sentence.substring(0, LONGEST_FAILURE) + "...";
        finishReason = FinishReason.FAILED;
        abandon();
    }

    /** Starts the reward of the finished response, if it takes time. */
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

    /** Whether {@link #verdict} returns at once. */
    boolean isJudged() {
        return verdict == null || verdict.isDone();
    }

    /** The reward of the response; empty after a failure, which {@link #failure} tells. */
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

    /** Why the rollout failed, as a sentence; null if it did not. */
    @Nullable
    String failure() {
        return failure;
    }

    void abandon() {
        try {
            episode.abandon();
        } catch (RuntimeException e) {
            LOG.debug("the episode of {} failed while it was cancelled", rolloutId(), e); // it is, either way
        }
    }

    /** An episode that failed to start. */
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

    /** The recorded distributions and routing; null without. */
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

    /** Whether the request asks to record the experts of each token. */
    boolean recordsRouting() {
        return prompt.request().getSampling().getRecordRouting();
    }

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

    /**
     * Recorded basis of a rollout's draws, if its sampling asks for it: kept and likeliest tokens. Confined to the
     * sampling thread.
     */
    static final class DrawNotes {
        private static final int INITIAL_DRAWS = 16;

        private final boolean recordsKept;
        private final int k;
        private int draws;
        private int[] keptCounts;
        private int[] keptIds = {};
        private int keptLength;
        private int[] topIds;
        private float[] topLogProbs;
        private float[] remainders;

        private DrawNotes(Sampling sampling) {
            this.recordsKept = sampling.recordsKept();
            this.k = sampling.topLogProbs();
            this.keptCounts = new int[recordsKept ? INITIAL_DRAWS : 0];
            this.topIds = new int[k * INITIAL_DRAWS];
            this.topLogProbs = new float[topIds.length];
            this.remainders = new float[k == 0 ? 0 : INITIAL_DRAWS];
        }

        /** Null if the request asks for no record. */
        static @Nullable DrawNotes of(Sampling sampling) {
            return sampling.recordsKept() || sampling.topLogProbs() > 0 ? new DrawNotes(sampling) : null;
        }

        void take(DecodeSteps done, int step, int slot) {
            if (recordsKept) {
                takeKept(done.kept(step, slot));
            }
            if (k > 0) {
                takeTop(done.top(step, slot, k));
            }
            draws++;
        }

        private void takeKept(int[] kept) {
            if (draws == keptCounts.length) {
                keptCounts = Arrays.copyOf(keptCounts, 2 * draws);
            }
            if (keptLength + kept.length > keptIds.length) {
                keptIds = Arrays.copyOf(keptIds, Math.max(2 * keptIds.length, keptLength + kept.length));
            }
            keptCounts[draws] = kept.length;
            System.arraycopy(kept, 0, keptIds, keptLength, kept.length);
            keptLength += kept.length;
        }

        private void takeTop(TopTokens top) {
            if (draws == remainders.length) {
                topIds = Arrays.copyOf(topIds, 2 * topIds.length);
                topLogProbs = Arrays.copyOf(topLogProbs, topIds.length);
                remainders = Arrays.copyOf(remainders, 2 * draws);
            }
            System.arraycopy(top.ids(), 0, topIds, draws * k, k);
            System.arraycopy(top.logProbs(), 0, topLogProbs, draws * k, k);
            remainders[draws] = top.remainder();
        }

        /** One row per draw. */
        SamplingTrace trace() {
            return new SamplingTrace(
                    k == 0
                            ? null
                            : new TopLogProbs(
                                    k,
                                    PackedInts.of(Arrays.copyOf(topIds, draws * k)),
                                    PackedFloats.of(Arrays.copyOf(topLogProbs, draws * k)),
                                    PackedFloats.of(Arrays.copyOf(remainders, draws))),
                    recordsKept
                            ? new KeptSupport(
                                    PackedInts.of(Arrays.copyOf(keptCounts, draws)),
                                    PackedInts.of(Arrays.copyOf(keptIds, keptLength)))
                            : null,
                    null,
                    null);
        }
    }

    /** Response tokens with their authors and log-probs; those of the environment have log-prob 0. */
    static final class ResponseTokens {
        private static final int INITIAL = 64;

        private final int most;
        private int[] tokens;
        private byte[] mask;
        private float[] logProbs;
        private float[] temperedLogProbs;
        private int length;

        /** @param most largest number of tokens */
        ResponseTokens(int most) {
            this.most = most;
            int initial = Math.min(most, INITIAL);
            this.tokens = new int[initial];
            this.mask = new byte[initial];
            this.logProbs = new float[initial];
            this.temperedLogProbs = new float[initial];
        }

        /**
         * Appends a token of the policy.
         *
         * @param temperedLogProb under the one before truncation
         */
        void sampled(int token, float logProb, float temperedLogProb) {
            append(token, (byte) 1, logProb, temperedLogProb);
        }

        void said(int[] said) {
            for (int token : said) {
                append(token, (byte) 0, 0f, 0f);
            }
        }

        private void append(int token, byte trained, float logProb, float temperedLogProb) {
            if (length == tokens.length) {
                int larger = Math.min(most, 2 * length);
                tokens = Arrays.copyOf(tokens, larger);
                mask = Arrays.copyOf(mask, larger);
                logProbs = Arrays.copyOf(logProbs, larger);
                temperedLogProbs = Arrays.copyOf(temperedLogProbs, larger);
            }
            tokens[length] = token;
            mask[length] = trained;
            logProbs[length] = logProb;
            temperedLogProbs[length] = temperedLogProb;
            length++;
        }

        int length() {
            return length;
        }

        boolean fit(int more) {
            return length + more <= most;
        }

        boolean isFull() {
            return length == most;
        }

        int token(int position) {
            return tokens[position];
        }

        boolean byPolicy(int position) {
            return mask[position] != 0;
        }

        int[] tokens() {
            return Arrays.copyOf(tokens, length);
        }

        byte[] mask() {
            return Arrays.copyOf(mask, length);
        }

        float[] logProbs() {
            return Arrays.copyOf(logProbs, length);
        }

        float[] temperedLogProbs() {
            return Arrays.copyOf(temperedLogProbs, length);
        }
    }

    /** Version spans of a growing rollout: one, or two if weights changed in flight, rarely more. */
    static final class VersionSpans {
        private long[] versions = new long[2];
        private int[] starts = new int[2];
        private int count;

        /** Adds the next position, sampled by {@code version}. */
        void extend(int position, long version) {
            if (count > 0 && versions[count - 1] == version) {
                return;
            }
            if (count == versions.length) {
                versions = Arrays.copyOf(versions, 2 * count);
                starts = Arrays.copyOf(starts, 2 * count);
            }
            versions[count] = version;
            starts[count] = position;
            count++;
        }

        /** The version of the oldest position; empty before the first. */
        OptionalLong oldest() { // versions only grow: nobody takes up an older one
            return count == 0 ? OptionalLong.empty() : OptionalLong.of(versions[0]);
        }

        /** Spans that cover a response of {@code length} tokens. */
        List<VersionSpan> toRecords(int length) {
            List<VersionSpan> spans = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                spans.add(new VersionSpan(versions[i], starts[i], i + 1 < count ? starts[i + 1] : length));
            }
            return spans;
        }
    }
}
