package dev.millrace.learner.step;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;

/** Refuses a step that made something NaN or infinite, naming the tensor and the element. */
final class FiniteStep {
    private FiniteStep() {}

    /** Where a gradient whose norm is not finite has its first such element. */
    static String firstNonFinite(Gradients gradients, double norm) {
        for (TensorSpec spec : gradients.specs()) {
            FloatBuffer gradient = gradients.tensor(spec.name());
            for (int i = 0; i < gradient.limit(); i++) {
                if (!Float.isFinite(gradient.get(i))) {
                    return "the gradient of " + spec.name() + " is " + gradient.get(i) + " at element " + i;
                }
            }
        }
        return "the norm of the gradient is " + norm + ", although every element is finite";
    }

    /** Moments too: an infinite second moment would freeze its weight for good, and no weight would show it. */
    static void require(TrainingBatch batch, Weights weights, AdamW.State optimizer) {
        if (weights.adapter().isPresent()) {
            require(batch, weights.trained().tensors(), "");
        }
        require(batch, weights.tensors(), "");
        require(batch, optimizer.first(), "the first moment of ");
        require(batch, optimizer.second(), "the second moment of ");
    }

    private static void require(TrainingBatch batch, TensorSet tensors, String what) {
        for (TensorSpec spec : tensors.specs()) {
            FloatBuffer tensor = tensors.tensor(spec.name());
            while (tensor.hasRemaining()) {
                float value = tensor.get();
                if (!Float.isFinite(value)) {
                    throw new NonFiniteStepException(
                            batch.batch().getBatchId(),
                            "the step made " + what + spec.name() + " " + value + " at element "
                                    + (tensor.position() - 1),
                            null);
                }
            }
        }
    }
}
