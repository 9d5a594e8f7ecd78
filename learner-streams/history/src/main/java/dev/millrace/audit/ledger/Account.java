package dev.millrace.audit.ledger;

import dev.millrace.schemas.TrainingStep;
import java.util.List;

/**
 * What the topics of a run say when they are read from their beginning to their end.
 *
 * @param balance what became of every rollout
 * @param generatedTokens tokens that the policy sampled, over all rollouts that can be read
 * @param scoredTokens policy tokens of all rollouts that have a score
 * @param trainedTokens tokens trained on, over all committed steps
 * @param steps every committed optimiser step, in order
 */
public record Account(
        Balance balance, long generatedTokens, long scoredTokens, long trainedTokens, List<TrainingStep> steps) {
    public Account {
        steps = List.copyOf(steps);
    }
}
