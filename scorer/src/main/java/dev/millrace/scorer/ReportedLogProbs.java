package dev.millrace.scorer;

import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.scorer.RolloutReading.Scorable;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Compares the log-probs that generators send with those of the version that they say they sampled with, by generator.
 *
 * <p>Only rollouts of one version from end to end count, and only where that version was scored: a generator that is behind is no
 * liar, and one that keeps its cache over a change of weights has log-probs between two versions. Confined to the scoring thread.
 */
final class ReportedLogProbs {
    /** Of whom something is remembered until the next record: more ids than that are made up. */
    private static final int MAX_GENERATORS = 1_000;

    private final Map<String, ComparedLogProbs> compared = new TreeMap<>();

    /** Rollouts and their scores, in the same order. */
    void add(List<Scorable> rollouts, List<Score> scores) {
        for (int i = 0; i < rollouts.size(); i++) {
            add(rollouts.get(i), scores.get(i));
        }
    }

    private void add(Scorable rollout, Score score) {
        if (rollout.rollout().getVersionSpans().size() != 1) {
            return;
        }
        for (LogProbVector vector : score.getVectors()) {
            if (vector.getPolicy() == PolicyRole.OLD) {
                add(rollout.rollout(), rollout.mask(), vector.getLogProbs());
            }
        }
    }

    private void add(Rollout rollout, byte[] mask, ByteBuffer scored) {
        String generatorId = rollout.getGeneratorId();
        if (compared.size() >= MAX_GENERATORS && !compared.containsKey(generatorId)) {
            return;
        }
        ByteBuffer sent = ComparedDistribution.behaviorLogProbs(rollout);
        long tokens = 0;
        double absolute = 0;
        double squared = 0;
        double sum = 0;
        double sumSquared = 0;
        for (int t = 0; t < mask.length; t++) {
            double ours = PackedFloats.get(scored, t);
            double difference = PackedFloats.get(sent, t) - ours;
            if (mask[t] == 1 && Double.isFinite(difference)) {
                tokens++;
                absolute += Math.abs(difference);
                squared += difference * difference;
                sum += ours;
                sumSquared += ours * ours;
            }
        }
        compared.merge(
                generatorId,
                new ComparedLogProbs(generatorId, tokens, absolute, squared, sum, sumSquared),
                ReportedLogProbs::together);
    }

    private static ComparedLogProbs together(ComparedLogProbs a, ComparedLogProbs b) {
        return new ComparedLogProbs(
                a.getGeneratorId(),
                a.getTokens() + b.getTokens(),
                a.getSumAbsolute() + b.getSumAbsolute(),
                a.getSumSquared() + b.getSumSquared(),
                a.getSumScored() + b.getSumScored(),
                a.getSumSquaredScored() + b.getSumSquaredScored());
    }

    /** What was compared since the last {@link #written}. */
    List<ComparedLogProbs> unwritten() {
        return List.copyOf(compared.values());
    }

    /** It is on the log. */
    void written() {
        compared.clear();
    }
}
