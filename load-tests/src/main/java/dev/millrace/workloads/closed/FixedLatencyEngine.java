package dev.millrace.workloads.closed;

import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.VersionSpan;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Stands in for an engine: every answer is there after the same time, however many are asked for, and says the same. */
final class FixedLatencyEngine implements TurnEngine {
    private static final int TOKEN = 5;
    private static final float LOG_PROB = -1;

    private final long latencyMs;
    private final int answerTokens;
    private final int capacityTokens;
    private final ScheduledExecutorService clock = Executors.newScheduledThreadPool(1, task -> {
        Thread thread = new Thread(task, "fixed-latency");
        thread.setDaemon(true);
        return thread;
    });
    private final AtomicLong sampled = new AtomicLong();

    FixedLatencyEngine(long latencyMs, int answerTokens, int capacityTokens) {
        this.latencyMs = latencyMs;
        this.answerTokens = answerTokens;
        this.capacityTokens = capacityTokens;
    }

    /** Done when the time has passed. */
    CompletableFuture<Void> waited() {
        CompletableFuture<Void> done = new CompletableFuture<>();
        clock.schedule(() -> done.complete(null), latencyMs, TimeUnit.MILLISECONDS);
        return done;
    }

    int[] answer() {
        int[] tokens = new int[answerTokens];
        Arrays.fill(tokens, TOKEN);
        return tokens;
    }

    @Override
    public CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener) {
        long startedAtMs = System.currentTimeMillis();
        return waited().thenApply(nothing -> {
            int[] tokens = answer();
            float[] logProbs = new float[tokens.length];
            Arrays.fill(logProbs, LOG_PROB);
            sampled.addAndGet(tokens.length);
            long nowMs = System.currentTimeMillis();
            return new SampledTurn(
                    tokens,
                    logProbs,
                    LogProbDistribution.RAW,
                    new float[0],
                    List.of(new VersionSpan(0L, 0, tokens.length)),
                    null,
                    FinishReason.LENGTH,
                    startedAtMs,
                    nowMs,
                    nowMs,
                    -1);
        });
    }

    @Override
    public int capacityTokens() {
        return capacityTokens;
    }

    @Override
    public long version() {
        return 0;
    }

    @Override
    public OptionalLong oldestVersion() {
        return OptionalLong.empty();
    }

    @Override
    public long sampledTokens() {
        return sampled.get();
    }

    @Override
    public EngineIdentity identity() {
        return new EngineIdentity("fixed-latency", "1", "none", null);
    }

    @Override
    public void requireAlive() {
        // it computes nothing that could break
    }

    @Override
    public void close() {
        clock.shutdownNow();
    }
}
