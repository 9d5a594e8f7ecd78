package dev.millrace.policy.session;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RoutingPorts;

/** What a graph says of one layer's routing, row by row. */
record RoutingOutput(long[] ids, float[] weights, int perToken) {

    static RoutingOutput read(OrtSession.Result result, int layer, DecoderShape shape) throws OrtException {
        OnnxTensor ids = (OnnxTensor) result.get(RoutingPorts.experts(layer)).orElseThrow();
        return new RoutingOutput(
                ids.getLongBuffer().array(),
                SequenceRunner.floats(result, RoutingPorts.weights(layer)),
                shape.traits().experts().perToken());
    }

    /** Notes a row as a token's. */
    void put(int row, RoutedExperts into, int token, int layer) {
        int at = into.at(token, layer);
        for (int i = 0; i < perToken; i++) {
            into.ids()[at + i] = (byte) ids[row * perToken + i];
            into.weights()[at + i] = weights[row * perToken + i];
        }
    }
}
