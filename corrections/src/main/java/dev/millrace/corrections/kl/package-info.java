/**
 * Kullback-Leibler divergence to a reference policy: estimators, penalties, controllers.
 *
 * <p>{@code q} is the current policy, {@code p} the reference, {@code d = log q(y) − log p(y)} of a sampled token,
 * {@code r = p/q = e^−d}. The estimators are {@code k1 = d}, {@code k2 = d²/2}, {@code k3 = r − 1 + d}. An estimator
 * that is right in value may be wrong in gradient. With {@code s = ∇ log q}, tokens sampled by {@code q}:
 * <table>
 * <caption>What each estimator's expectation is, and what its gradient is the gradient of</caption>
 * <tr><th>estimator</th><th>value</th><th>gradient of the sample</th><th>optimises</th></tr>
 * <tr><td>k1</td><td>KL(q‖p)</td><td>s, on average 0</td><td>nothing</td></tr>
 * <tr><td>|d|</td><td>not a KL</td><td>sgn(d) s</td><td>the L1 distance</td></tr>
 * <tr><td>k2</td><td>close to KL(q‖p)</td><td>d s</td><td>KL(q‖p)</td></tr>
 * <tr><td>k3</td><td>KL(q‖p)</td><td>(1 − r) s</td><td>KL(p‖q)</td></tr>
 * <tr><td>k1+, k3+</td><td>KL(q‖p)</td><td>d s</td><td>KL(q‖p)</td></tr>
 * </table>
 * Tokens sampled by a behavior policy {@code μ} need the weight {@code w = q/μ}, and then it matters whether {@code w}
 * is differentiated: {@code sg[w] k2}, {@code w k1} and {@code w k3} optimise KL(q‖p); {@code sg[w] k1} nothing;
 * {@code sg[w] k3} KL(p‖q); {@code w k2} the f-divergence {@code E_q[d²/2]}. As a penalty in the reward only k1 is
 * right for KL(q‖p), and {@code 1 − r} for KL(p‖q).
 *
 * <p>{@link dev.millrace.corrections.kl.KlPlan} returns the estimator that serves a purpose and rejects the others with
 * the reason. All of this is per token, at the contexts that were visited. A loss term does not include how the policy
 * changes which contexts are visited; a penalty in the reward, carried to earlier tokens, does.
 */
@NullMarked
package dev.millrace.corrections.kl;

import org.jspecify.annotations.NullMarked;
