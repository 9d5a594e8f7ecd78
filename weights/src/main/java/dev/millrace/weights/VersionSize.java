package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Weights;
import java.util.Optional;

/**
 * Size of a version.
 *
 * @param isAdapter  whether they form an adapter whose base is the run's first version
 */
public record VersionSize(long parameters, boolean isAdapter) {

    public static VersionSize of(DecoderShape shape) {
        return new VersionSize(shape.parameterCount(), false);
    }

    /** @param lora of the versions, if these are adapters */
    public static VersionSize of(DecoderShape shape, Optional<LoraShape> lora) {
        return lora.map(low -> new VersionSize(low.parameterCount(shape), true)).orElseGet(() -> of(shape));
    }

    static VersionSize of(Weights weights) {
        return of(weights.shape(), weights.adapter().map(adapter -> adapter.shape()));
    }
}
