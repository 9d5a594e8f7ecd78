package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.EntryScores;
import dev.millrace.policy.session.GradientNormSession;
import dev.millrace.policy.session.GradientPass;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scores and differentiates minibatches, cut into shards that run on threads of their own.
 *
 * <p>Shards add to one gradient, their micro-batches in turns and to every layer in the same order, so that the bits do not
 * depend on which was ready first. Used by one thread, except {@link #cancel()}.
 */
final class GradientShards implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GradientShards.class);
    private static final long CLOSE_LIMIT_SECONDS = 60;

    private final ScoringSession scoring;
    private final GradientNormSession norms;
    private final GradientSession gradient;
    private final DecoderShape shape;
    private final int shards;
    private final List<TensorSpec> trained;
    /** One for each shard, where no sum is wanted; made when they are first needed. */
    private final List<Gradients> own = new ArrayList<>();

    private final ExecutorService threads;
    private Runnable progress = () -> {};
    private volatile boolean cancelled;
    private volatile List<Future<?>> running = List.of();

    /** What was found of the parts of a minibatch, packed as its layout is. */
    private TokenScores gathered(Shard minibatch, List<Shard> parts, IntFunction<TokenScores> found) {
        TokenScores scores = TokenScores.allocate(minibatch.sequences().scoredCount(), shape);
        for (int i = 0; i < parts.size(); i++) {
            Shard part = parts.get(i);
            TokenScores own = found.apply(i);
            part.put(own.logProbs(), scores.logProbs());
            part.put(own.entropies(), scores.entropies());
            part.put(own.sumSquaredProbs(), scores.sumSquaredProbs());
            if (scores.values().length > 0) {
                part.put(own.values(), scores.values());
            }
        }
        return scores;
    }

    /**
     * @param lora    of the adapters that are differentiated by; empty for all weights
     * @param config  how many shards, and what each may take
     * @param threads that work on them; decides nothing but the time it takes
     */
    GradientShards(Engine engine, DecoderShape shape, Optional<LoraShape> lora, StepConfig config, int threads) {
        this.trained = lora.map(low -> low.tensors(shape)).orElseGet(shape::tensors);
        this.shape = shape;
        this.shards = config.shards();
        this.scoring = new ScoringSession(engine, shape, config.tokensPerMicrobatch(), config.logits());
        this.norms = new GradientNormSession(engine, shape, config.limit(shape));
        this.gradient =
                new GradientSession(engine, shape, lora, config.limit(shape), config.logits(), config.activations());
        AtomicInteger named = new AtomicInteger();
        this.threads = Executors.newFixedThreadPool(threads, task -> {
            Thread thread = new Thread(task, "learner-shard-" + named.getAndIncrement());
            thread.setDaemon(true);
            return thread;
        });
    }

    /**
     * A forward pass over some members: overwrites their log-probs, and what else is to be known of them.
     *
     * @param moments null where nothing else is
     * @throws NonFiniteMemberException naming the member of the batch
     */
    void score(
            Weights weights,
            StepMembers members,
            int[] indices,
            float[] into,
            @Nullable CurrentMoments moments,
            StepMetricsTally means) {
        if (indices.length > 0) {
            long start = System.nanoTime();
            Shard wanted = members.select(indices);
            CurrentDistributions distributions = moments == null ? null : moments.distributions();
            TokenScores scores = distributions == null ? score(weights, wanted) : score(weights, wanted, distributions);
            wanted.put(scores.logProbs(), into);
            if (moments != null) {
                moments.put(wanted, scores);
            }
            means.addForward(start);
        }
    }

    /** The same, of the likeliest tokens too. */
    private TokenScores score(Weights weights, Shard wanted, CurrentDistributions distributions) {
        return run(wanted, (shard, i) -> {
            EntryScores found = scoring.scoreEntries(
                    weights, shard.sequences(), shard.temperatures(), distributions.entries(shard), distributions.k());
            distributions.put(shard, found);
            return found.scores();
        });
    }

    /**
     * A forward pass.
     *
     * @throws NonFiniteMemberException naming the member of the batch
     */
    TokenScores score(Weights weights, Shard minibatch) {
        return run(minibatch, (shard, i) -> scoring.score(weights, shard.sequences(), shard.temperatures()));
    }

    /**
     * Through which experts the tokens of some members go under these weights.
     *
     * @return one per member of the batch; null for the others
     * @throws NonFiniteMemberException naming the member of the batch
     */
    @Nullable
    RoutedExperts[] route(Weights weights, StepMembers members, int[] indices, StepMetricsTally means) {
        long start = System.nanoTime();
        @Nullable RoutedExperts[] routing = new RoutedExperts[members.count()];
        run(members.select(indices), (shard, i) -> {
            ScoringSession.Routed found = scoring.scoreRouted(weights, shard.sequences(), shard.temperatures());
            for (int s = 0; s < shard.count(); s++) {
                routing[shard.member(s)] = found.routing()[s];
            }
            return found.scores();
        });
        means.addForward(start);
        return routing;
    }

    /** Coefficients c, e and v of log-probs, entropies and values, one of each per packed token. */
    record TokenCoefficients(float[] logProbs, float[] entropies, float[] values) {
        private TokenCoefficients pick(Shard shard) {
            return new TokenCoefficients(shard.pick(logProbs), shard.pick(entropies), shard.pick(values));
        }

        private GradientPass.Part part(Shard shard) {
            TokenCoefficients own = pick(shard);
            return new GradientPass.Part(
                    shard.sequences(), shard.temperatures(), own.logProbs, own.entropies, own.values);
        }
    }

    /**
     * Overwrites {@code into} with {@code d(Σ c log π + Σ e H + Σ v V)/dW}, and returns the scores found on the way.
     *
     * @throws NonFiniteMemberException naming the member of the batch
     */
    TokenScores differentiate(Weights weights, Shard minibatch, TokenCoefficients coefficients, Gradients into) {
        into.zero();
        List<Shard> parts = parts(minibatch);
        List<GradientPass.Part> inputs = parts.stream().map(coefficients::part).toList();
        GradientPass pass = gradient.begin(weights, inputs, into);
        List<Callable<Void>> tasks = new ArrayList<>();
        List<Shard> shardOf = new ArrayList<>();
        for (int i = 0; i < pass.pieces(); i++) {
            int piece = i;
            tasks.add(() -> {
                pass.run(piece);
                return null;
            });
            shardOf.add(parts.get(pass.part(piece)));
        }
        awaitAll(tasks, shardOf); // where it is given up, pieces may still be running, and what they read stays
        pass.finish();
        pass.close();
        return gathered(minibatch, parts, pass::scores);
    }

    /**
     * The L2 norm of each sequence's own gradient {@code d(Σ_t log π(y_t))/dW} over the tokens it is trained on, by all
     * parameters.
     *
     * @param norms overwritten at the given members
     * @throws NonFiniteMemberException naming the member of the batch
     */
    void gradientNorms(
            Weights weights,
            StepMembers members,
            int[] indices,
            TokenBatch left,
            double[] norms,
            StepMetricsTally means) {
        if (indices.length == 0) {
            return;
        }
        long start = System.nanoTime();
        run(members.select(indices), (shard, i) -> {
            int tokens = shard.sequences().scoredCount();
            float[] trained = new float[tokens];
            for (int s = 0; s < shard.count(); s++) {
                int from = left.start(shard.member(s)) - shard.sequences().offset(s);
                for (int t = shard.sequences().offset(s); t < shard.sequences().offset(s + 1); t++) {
                    trained[t] = left.isTrained(from + t) ? 1f : 0f;
                }
            }
            double[] found = this.norms.norms(weights, shard.sequences(), shard.temperatures(), trained);
            for (int s = 0; s < found.length; s++) {
                norms[shard.member(s)] = found[s];
            }
            return TokenScores.allocate(tokens, shape);
        });
        means.addSeconds(StepMetric.SECONDS_GRADIENT_NORMS, start);
    }

    /**
     * The L2 norm of what each sequence adds to {@link #differentiate}'s gradient, in the minibatch's order. Every sequence
     * goes through the gradient graph by itself.
     */
    double[] sequenceNorms(Weights weights, Shard minibatch, TokenCoefficients coefficients) {
        double[] norms = new double[minibatch.count()];
        while (own.size() < shards) {
            own.add(new Gradients(trained));
        }
        run(minibatch, (shard, i) -> {
            Gradients sum = own.get(i);
            TokenCoefficients picked = coefficients.pick(shard);
            for (int s = 0; s < shard.count(); s++) {
                Shard one = shard.part(s, shard.count());
                sum.zero();
                gradient.accumulate(weights, picked.part(one), sum);
                norms[i + s * shards] = sum.l2Norm();
            }
            return TokenScores.allocate(shard.sequences().scoredCount(), shape);
        });
        return norms;
    }

    private interface Work {
        TokenScores on(Shard shard, int index);
    }

    private List<Shard> parts(Shard minibatch) {
        return IntStream.range(0, shards)
                .mapToObj(i -> minibatch.part(i, shards))
                .toList();
    }

    private TokenScores run(Shard minibatch, Work work) {
        List<Shard> parts = parts(minibatch);
        List<Callable<TokenScores>> tasks = new ArrayList<>();
        for (int i = 0; i < shards; i++) {
            int index = i;
            tasks.add(() -> work.on(parts.get(index), index));
        }
        return gathered(minibatch, parts, awaitAll(tasks, parts)::get);
    }

    /**
     * Runs tasks, begun in their order.
     *
     * @param shardOf what each task is of
     */
    private <T> List<T> awaitAll(List<Callable<T>> tasks, List<Shard> shardOf) {
        List<Future<T>> futures = tasks.stream().map(threads::submit).toList();
        running = List.copyOf(futures);
        if (cancelled) { // cancel() may have looked before the futures were there to be found
            cancel();
        }
        List<T> results = new ArrayList<>();
        RuntimeException failure = null;
        for (int i = 0; i < futures.size(); i++) {
            try {
                results.add(futures.get(i).get());
                progress.run();
            } catch (ExecutionException | CancellationException e) {
                RuntimeException found = unwrapped(e, shardOf.get(i));
                failure = failure == null || failure instanceof CancellationException ? found : failure;
            } catch (InterruptedException e) {
                futures.forEach(future -> future.cancel(true));
                Thread.currentThread().interrupt();
                throw new CancellationException("interrupted while shards were being differentiated");
            }
        }
        running = List.of();
        if (failure != null) {
            throw failure;
        }
        if (cancelled) { // every shard may have been quicker than cancel()
            throw new CancellationException("the step was cancelled");
        }
        return results;
    }

    private static RuntimeException unwrapped(Exception e, Shard shard) {
        if (e.getCause() instanceof Error error) {
            throw error;
        }
        if (e.getCause() instanceof NonFiniteScoreException cause) {
            return new NonFiniteMemberException(
                    shard.member(cause.sequence()), String.valueOf(cause.getMessage()), cause);
        }
        return e.getCause() instanceof RuntimeException cause
                ? cause
                : new CancellationException("the step was cancelled");
    }

    /** Has somebody told of every part of a pass that is done, by the thread that uses it. */
    void onProgress(Runnable listener) {
        progress = listener;
    }

    /** Ends the pass under way, and every later one, with a {@link CancellationException}; from any thread. */
    void cancel() {
        cancelled = true;
        running.forEach(future -> future.cancel(true));
    }

    @Override
    public void close() {
        threads.shutdownNow();
        try {
            if (!threads.awaitTermination(CLOSE_LIMIT_SECONDS, TimeUnit.SECONDS)) {
                // closing a session under a running call would crash the process; leaking it does not
                LOG.warn("a micro-batch is still running after {} s; its session stays open", CLOSE_LIMIT_SECONDS);
                return;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            LOG.warn("interrupted while waiting for the last micro-batch; its session stays open");
            return;
        }
        gradient.close();
        norms.close();
        scoring.close();
    }
}
