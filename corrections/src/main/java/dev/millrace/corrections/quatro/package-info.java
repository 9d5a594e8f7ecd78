/**
 * Query-adaptive trust regions: one multiplier per prompt, found so that the best policy for that prompt's answers
 * stays within a KL budget.
 *
 * <p>Source: Lee et al., <i>QUATRO: Query-Adaptive Trust Region Policy Optimization for LLM Fine-tuning</i>, arXiv
 * 2602.04620, which derives its objective from the exact Lagrangian of a KL-constrained step per prompt. The reading
 * here: the constraint is KL(current || sampler) on whole answers, the dual is solved exactly over the answers of the
 * group (all equally likely under the sampler), and the update is the gradient of that Lagrangian.
 */
@NullMarked
package dev.millrace.corrections.quatro;

import org.jspecify.annotations.NullMarked;
