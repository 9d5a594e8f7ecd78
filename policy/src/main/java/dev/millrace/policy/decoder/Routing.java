package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;

/** Who decides which experts a token goes through, and who hears of it. */
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
     * The experts that a layer's tokens go through.
     *
     * @param own int64 [rows, experts of a token]: those that the router would take
     */
    Value chosen(Operators ops, int layer, Value own);

    /**
     * Says what was taken.
     *
     * @param experts as {@link #chosen} gave them
     * @param weights of the same shape
     */
    void took(int layer, Value experts, Value weights);
}
