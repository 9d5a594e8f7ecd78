package dev.millrace.experiments;

/**
 * The current policy on prompts that are the same at every evaluation and never trained on.
 *
 * @param step     steps taken before it
 * @param reward   mean reward at temperature 1
 * @param accuracy share of answers that are right throughout
 */
record Evaluation(long step, double reward, double accuracy) {}
