package dev.millrace.replay.retrain;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.ReplayedRouting;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.rollout.ComparedDistribution;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Log-probs of parts of trajectories with the engine of scorer and learner, equal bit for bit on the same kind of
 * machine. Memory is one micro-batch per thread. Thread-safe.
 */
public final class StretchScoring implements AutoCloseable {
    private final ScoringSession session;

    /**
     * Part of a response to score under one version.
     *
     * @param start first response token
     * @param end behind the last
     * @param into receives the log-probs
     * @param at index in {@code into} of the response's first token
     * @param values receives the values of a policy with a value head, likewise; null where they are not wanted
     */
    public record Stretch(int trajectory, int start, int end, float[] into, int at, float @Nullable [] values) {
        /** Log-probs alone. */
        public Stretch(int trajectory, int start, int end, float[] into, int at) {
            this(trajectory, start, end, into, at, null);
        }
    }

    /** @param tokenBudget padded tokens of a micro-batch */
    public StretchScoring(Engine engine, DecoderShape shape, int tokenBudget) {
        this.session = new ScoringSession(engine, shape, tokenBudget);
    }

    /**
     * Fills the stretches in one pass over their trajectories.
     *
     * @throws dev.millrace.policy.session.NonFiniteScoreException for non-finite weights
     */
    public void score(Weights weights, List<Trajectory> trajectories, List<Stretch> stretches) {
        int[] wanted = stretches.stream()
                .mapToInt(Stretch::trajectory)
                .distinct()
                .sorted()
                .toArray();
        int[][] tokens = new int[wanted.length][];
        int[] firstScored = new int[wanted.length];
        @Nullable SampledSupport[] kept = new SampledSupport[wanted.length];
        @Nullable RoutedExperts[] routing = new RoutedExperts[wanted.length];
        float[] temperatures = new float[wanted.length];
        int[] places = new int[trajectories.size()];
        for (int i = 0; i < wanted.length; i++) {
            Trajectory trajectory = trajectories.get(wanted[i]);
            firstScored[i] = PackedInts.length(trajectory.getPromptTokens());
            tokens[i] = new int[firstScored[i] + PackedInts.length(trajectory.getResponseTokens())];
            PackedInts.copyTo(trajectory.getPromptTokens(), tokens[i], 0);
            PackedInts.copyTo(trajectory.getResponseTokens(), tokens[i], firstScored[i]);
            routing[i] = ReplayedRouting.of(trajectory.getRouting());
            KeptSupport support = trajectory.getKeptTokens();
            if (support != null) {
                kept[i] = new SampledSupport(
                        ComparedDistribution.keptCounts(support, trajectory.getMask()),
                        PackedInts.toArray(support.getTokenIds()));
            }
            temperatures[i] = (float) trajectory.getTemperature();
            places[wanted[i]] = i;
        }
        SequenceBatch batch = new SequenceBatch(tokens, firstScored, kept).routed(routing);
        TokenScores found = session.score(weights, batch, temperatures);
        for (Stretch one : stretches) {
            int from = batch.offset(places[one.trajectory()]) + one.start();
            int to = one.at() + one.start();
            System.arraycopy(found.logProbs(), from, one.into(), to, one.end() - one.start());
            if (one.values() != null) {
                System.arraycopy(found.values(), from, one.values(), to, one.end() - one.start());
            }
        }
    }

    @Override
    public void close() {
        session.close();
    }
}
