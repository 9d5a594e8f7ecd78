package dev.millrace.runtime.evaluation;

/**
 * A version of the policy on held-out prompts, the same prompts and draws every time.
 *
 * @param version that was evaluated
 * @param reward mean of the responses
 * @param startLogProb mean log-prob of a token of these responses under the weights of version 0 at temperature 1, in nats: by how much it
 *     is below that of version 0's own responses, by so much the text has moved away from the model; NaN where version 0 was random, or is
 *     not kept any more
 * @param responses how many
 * @param tokens that the policy wrote in them
 */
public record EvaluatedVersion(long version, double reward, double startLogProb, int responses, long tokens) {}
