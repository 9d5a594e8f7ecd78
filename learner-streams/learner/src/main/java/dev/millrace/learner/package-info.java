/**
 * The learner: batches in, versions out, exactly once.
 *
 * <p>{@link dev.millrace.learner.Learner} is the role; {@code batch} reads and checks what comes in, {@code step} is the
 * mathematics, {@code commit} writes what goes out.
 */
@NullMarked
package dev.millrace.learner;

import org.jspecify.annotations.NullMarked;
