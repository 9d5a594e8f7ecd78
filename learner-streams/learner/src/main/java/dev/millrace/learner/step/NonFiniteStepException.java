package dev.millrace.learner.step;

import org.jspecify.annotations.Nullable;

/**
 * Loss, gradient or weights of a step are NaN or infinite. Nothing of it is published: the newest version stays what it
 * was, and the same batch would lead here again.
 */
public final class NonFiniteStepException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NonFiniteStepException(long batchId, String what, @Nullable Throwable cause) {
        super(
                "batch " + batchId + ": " + what
                        + "; nothing was published. Lower learning_rate or max_grad_norm, or roll the run back to"
                        + " an earlier version; a retry under the same configuration fails again",
                cause);
    }
}
