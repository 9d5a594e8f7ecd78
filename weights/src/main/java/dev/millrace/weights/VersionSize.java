package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Weights;
import java.util.Optional;

/**
 * How much of a policy a version is.
 *
 * @param parameters that a step changes and a version has
 * @param isAdapter  whether they are those of an adapter, and the policy's others lie in the run's first version
 */
public record VersionSize(long parameters, boolean isAdapter) {

    /** Of versions that are all of a policy. */
    public static VersionSize of(DecoderShape shape) {
        return new VersionSize(shape.parameterCount(), false);
    }

    /** @param lora of the versions, if they are adapters */
    public static VersionSize of(DecoderShape shape, Optional<LoraShape> lora) {
        return lora.map(low -> new VersionSize(low.parameterCount(shape), true)).orElseGet(() -> of(shape));
    }

    static VersionSize of(Weights weights) {
        return of(weights.shape(), weights.adapter().map(adapter -> adapter.shape()));
    }
}
