package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RoutingPorts;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;

record RoutingOutput(long[] ids, float[] weights, int perToken) {

    static RoutingOutput read(Session.Result result, int layer, DecoderShape shape) {
        Tensor ids = result.tensor(RoutingPorts.experts(layer));
        return new RoutingOutput(
                ids.longs(),
                result.floats(RoutingPorts.weights(layer)),
                shape.traits().experts().perToken());
    }

    void put(int row, RoutedExperts into, int token, int layer) {
        int at = into.at(token, layer);
        for (int i = 0; i < perToken; i++) {
            into.ids()[at + i] = (byte) ids[row * perToken + i];
            into.weights()[at + i] = weights[row * perToken + i];
        }
    }
}
