package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;

/** Decides which experts a token uses, and records the choice. */
interface Routing {
    /** The router alone decides. */
    Routing OWN = new Routing() {
        @Override
        public Value chosen(Operators ops, int layer, Value own) {
            return own;
        }

        @Override
        public void took(int layer, Value experts, Value weights) {}
    };

    /**
     * Returns the experts that a layer's tokens use.
     *
     * @param own int64 [rows, experts of a token]: the router's own choice
     */
    Value chosen(Operators ops, int layer, Value own);

    /**
     * Reports the used experts.
     *
     * @param experts as {@link #chosen} gave them
     */
    void took(int layer, Value experts, Value weights);
}
