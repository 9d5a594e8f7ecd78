/**
 * Validation of rollouts, shared by scorer, topology and tests.
 *
 * <p>{@link dev.millrace.schemas.rollout.RolloutValidator} checks a rollout for consistency; the
 * other classes check parts shared with other records. All are pure: a record goes in, and the result is a {@link
 * dev.millrace.schemas.rollout.RefusedException} with the reason, the field, the value and the bound, or nothing.
 */
@NullMarked
package dev.millrace.schemas.rollout;

import org.jspecify.annotations.NullMarked;
