/**
 * Log-probs of sampled tokens on the learner's engine, under the versions that sampled them and under the newest.
 *
 * <p>Promises: a rollout that can be read gets one score, in the partition of its own and in its partition's order; a
 * score and the progress past its rollout are one transaction; a version that cannot be had is said in the score and
 * never replaced by another; nothing here makes a generator or the learner wait.
 */
@NullMarked
package dev.millrace.scorer;

import org.jspecify.annotations.NullMarked;
