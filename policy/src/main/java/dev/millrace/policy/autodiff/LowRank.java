package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;

/**
 * A matrix {@code W = W0 + scale * (B A)} that a graph reads merged and differentiates by its factors: for {@code y = x
 * W^T}
 *
 * <pre>
 *   dA = scale * (dy B)^T x        dB = scale * dy^T (x A^T)
 * </pre>
 *
 * <p>These are {@code B^T dW} and {@code dW A^T}, so dW itself is never computed.
 *
 * @param a     [rank, in]
 * @param b     [out, rank]
 */
public record LowRank(Value a, Value b, float scale) {

    void propagate(Value x, Value dy, Backward backward) {
        Operators o = backward.ops();
        backward.add(a, o.gemm(o.mul(o.gemm(dy, b, false, false), scale), x, true, false));
        backward.add(b, o.gemm(dy, o.mul(o.gemm(x, a, false, true), scale), true, false));
    }
}
