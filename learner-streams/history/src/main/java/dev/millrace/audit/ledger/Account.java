package dev.millrace.audit.ledger;

import dev.millrace.schemas.TrainingStep;
import java.util.List;

/**
 * Contents of a run's topics, read completely.
 *
 * @param generatedTokens sampled tokens of all readable rollouts
 * @param trainedTokens over all committed steps
 * @param steps committed, in order
 */
public record Account(
        Balance balance, long generatedTokens, long scoredTokens, long trainedTokens, List<TrainingStep> steps) {}
