package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Value;

/** How the tokens of a graph attend to each other: the one part in which scoring and decoding differ. */
interface Attention {

    /**
     * Turns the projections of one layer into the mixed values, before the output projection.
     *
     * @param query [rows, heads*headSize], positions not yet applied
     * @param key   [rows, kvHeads*headSize], positions not yet applied
     * @param value [rows, kvHeads*headSize]
     * @return [rows, heads*headSize]
     */
    Value attend(int layer, Value query, Value key, Value value);
}
