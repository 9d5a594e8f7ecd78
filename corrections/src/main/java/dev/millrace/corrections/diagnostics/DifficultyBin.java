package dev.millrace.corrections.diagnostics;

/**
 * The responses to prompts of like difficulty, which is a prompt's own share of correct responses: 0, up to a quarter, up to a half, up to
 * three quarters, below 1, and 1.
 *
 * <p>Where prompts have few responses the share is rough, and a prompt that is seldom solved stands among those never solved.
 *
 * @param from share from which on; itself in the bin only where it is 0 and {@code to} is 0, or both are 1
 * @param to share up to which, itself in the bin unless it is 1 and {@code from} is not
 * @param prompts of it, at least 1
 * @param responses theirs
 * @param tokensMean tokens that the policy wrote in one, mean over responses
 * @param truncatedShare of the responses
 */
public record DifficultyBin(
        double from, double to, int prompts, int responses, double tokensMean, double truncatedShare) {}
