package dev.millrace.scorer;

import dev.millrace.policy.session.EntryScores;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.scorer.RolloutReading.Scorable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Scores rollouts together with the likeliest tokens that they name, those that name as many of them at once. */
final class LikeliestScoring {
    private final ScoringSession session;
    private final Weights weights;

    LikeliestScoring(ScoringSession session, Weights weights) {
        this.session = session;
        this.weights = weights;
    }

    /**
     * Scores of all of them.
     *
     * @param batch the rollouts' packing
     * @param top overwritten where a rollout names likeliest tokens: the same ids, with the log-probs of these weights
     */
    TokenScores score(List<Scorable> rollouts, SequenceBatch batch, @Nullable TopLogProbs[] top) {
        TreeMap<Integer, List<Integer>> byCount = new TreeMap<>();
        for (int i = 0; i < top.length; i++) {
            TopLogProbs named = named(rollouts.get(i));
            byCount.computeIfAbsent(named == null ? 0 : named.getK(), absent -> new ArrayList<>())
                    .add(i);
        }
        int tokens = batch.scoredCount();
        TokenScores all = new TokenScores(new float[tokens], new float[tokens], new float[tokens]);
        byCount.forEach((k, places) -> {
            List<Scorable> some = places.stream().map(rollouts::get).toList();
            SequenceBatch part = Scorable.batch(some);
            float[] temperatures = Scorable.temperatures(some);
            TokenScores found;
            if (k == 0) {
                found = session.score(weights, part, temperatures);
            } else {
                EntryScores entries = session.scoreEntries(
                        weights,
                        part,
                        temperatures,
                        some.stream().map(LikeliestScoring::entries).toArray(int[][]::new),
                        k);
                for (int i = 0; i < some.size(); i++) {
                    top[places.get(i)] = top(some.get(i), part.offset(i), entries);
                }
                found = entries.scores();
            }
            for (int i = 0; i < some.size(); i++) {
                copy(found, part, i, all, batch, places.get(i));
            }
        });
        return all;
    }

    private static @Nullable TopLogProbs named(Scorable rollout) {
        SamplingTrace trace = rollout.rollout().getSamplingTrace();
        return trace == null ? null : trace.getTopLogProbs();
    }

    private static TopLogProbs required(Scorable rollout) {
        return Objects.requireNonNull(named(rollout), "it is among those that name some");
    }

    /** Rows of trained tokens spread over all of them; those between have nothing that is looked at. */
    private static int[] entries(Scorable rollout) {
        int k = required(rollout).getK();
        int[] named = PackedInts.toArray(required(rollout).getTokenIds());
        int[] entries = new int[rollout.responseLength() * k];
        int row = 0;
        for (int t = 0; t < rollout.responseLength(); t++) {
            if (rollout.mask()[t] == 1) {
                System.arraycopy(named, k * row++, entries, k * t, k);
            }
        }
        return entries;
    }

    private static TopLogProbs top(Scorable rollout, int offset, EntryScores scores) {
        int k = scores.k();
        float[] logProbs = new float[rollout.responseLength() * k];
        float[] remainders = new float[rollout.responseLength()];
        int row = 0;
        for (int t = 0; t < rollout.responseLength(); t++) {
            if (rollout.mask()[t] == 1) {
                System.arraycopy(scores.logProbs(), (offset + t) * k, logProbs, row * k, k);
                remainders[row++] = scores.remainders()[offset + t];
            }
        }
        return new TopLogProbs(
                k,
                required(rollout).getTokenIds(),
                PackedFloats.of(Arrays.copyOf(logProbs, row * k)),
                PackedFloats.of(Arrays.copyOf(remainders, row)));
    }

    private static void copy(
            TokenScores from, SequenceBatch part, int i, TokenScores to, SequenceBatch batch, int place) {
        int length = part.offset(i + 1) - part.offset(i);
        System.arraycopy(from.logProbs(), part.offset(i), to.logProbs(), batch.offset(place), length);
        System.arraycopy(from.entropies(), part.offset(i), to.entropies(), batch.offset(place), length);
        System.arraycopy(from.sumSquaredProbs(), part.offset(i), to.sumSquaredProbs(), batch.offset(place), length);
    }
}
