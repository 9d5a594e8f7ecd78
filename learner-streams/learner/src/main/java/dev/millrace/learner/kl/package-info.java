/**
 * The leash: divergence from a reference policy, as a term of the loss or as a penalty in the reward. Which estimator is
 * right where is the corrections' to say ({@link dev.millrace.corrections.kl.KlPlan}); this names the log-probs it reads.
 */
@NullMarked
package dev.millrace.learner.kl;

import org.jspecify.annotations.NullMarked;
