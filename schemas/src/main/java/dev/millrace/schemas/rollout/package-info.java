/**
 * What a rollout must hold to be scored and trained on: the one check that scorer, topology and tests share.
 *
 * <p>{@link dev.millrace.schemas.rollout.RolloutValidator} holds a rollout to everything it claims about itself; the
 * classes beside it check parts that other records have too. All are pure: a record goes in, and what comes out is a
 * {@link dev.millrace.schemas.rollout.RefusedException} with the reason, the field, the value and the bound, or nothing.
 */
@NullMarked
package dev.millrace.schemas.rollout;

import org.jspecify.annotations.NullMarked;
