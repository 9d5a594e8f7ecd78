package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.RoutingPorts;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;

/**
 * The experts that the tokens of a sequence used in each layer, and their weights: [tokens][layers][experts of a
 * token].
 *
 * <p>Tokens are those that were fed, from the first on; the last one of a finished sequence never is. The id
 * {@value RoutingPorts#OWN_CHOICE} marks entries that were not recorded, for instance in the last layer of a prompt's
 * tokens, whose output is not used. The arrays are not copied.
 *
 * @param ids      of the experts, from 0
 * @param weights of these experts; 0 where not recorded
 */
@SuppressWarnings("ArrayRecordComponent") // compared by nobody; two of the same values are not the same routing
public record RoutedExperts(int layers, int perToken, byte[] ids, float[] weights) {
    public RoutedExperts {
        if (layers < 1 || perToken < 1 || ids.length % (layers * perToken) != 0 || weights.length != ids.length) {
            throw new IllegalArgumentException(
                    "a routing has as many ids as weights, a multiple of layers and experts of a"
                            + " token: layers=" + layers + ", perToken=" + perToken + ", ids=" + ids.length
                            + ", weights="
                            + weights.length);
        }
    }

    /**
     * Reads packed bytes and little-endian floats.
     *
     * @param ids not changed
     * @param weights not changed
     */
    public static RoutedExperts of(int layers, int perToken, ByteBuffer ids, ByteBuffer weights) {
        byte[] ofExperts = new byte[ids.remaining()];
        ids.duplicate().get(ofExperts);
        FloatBuffer numbers = weights.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
        float[] ofWeights = new float[numbers.remaining()];
        numbers.get(ofWeights);
        return new RoutedExperts(layers, perToken, ofExperts, ofWeights);
    }

    static RoutedExperts unknown(DecoderShape shape, int tokens) {
        int perToken = shape.traits().experts().perToken();
        int size = Math.multiplyExact(Math.multiplyExact(tokens, shape.layers()), perToken);
        byte[] ids = new byte[size];
        Arrays.fill(ids, (byte) RoutingPorts.OWN_CHOICE);
        return new RoutedExperts(shape.layers(), perToken, ids, new float[size]);
    }

    public int tokens() {
        return ids.length / (layers * perToken);
    }

    /** Returns the index where the experts of a token in a layer begin. */
    public int at(int token, int layer) {
        return (token * layers + layer) * perToken;
    }

    public boolean isNoted(int token, int layer) {
        return ids[at(token, layer)] != RoutingPorts.OWN_CHOICE;
    }

    /** Returns the routing of the first {@code tokens} tokens; tokens beyond this routing are not recorded. */
    public RoutedExperts of(int tokens) {
        int size = at(tokens, 0);
        byte[] some = Arrays.copyOf(ids, size);
        if (size > ids.length) {
            Arrays.fill(some, ids.length, size, (byte) RoutingPorts.OWN_CHOICE);
        }
        return new RoutedExperts(layers, perToken, some, Arrays.copyOf(weights, size));
    }

    /** Refuses a routing that does not fit such a model. */
    public void require(DecoderShape shape, String what) {
        Experts experts = shape.traits().experts();
        if (!experts.present()) {
            throw new IllegalArgumentException(what + " has routed experts, and the model has none");
        }
        if (layers != shape.layers() || perToken != experts.perToken()) {
            throw new IllegalArgumentException(what + " has " + perToken + " experts of a token in " + layers
                    + " layers, and the model " + experts.perToken() + " in " + shape.layers());
        }
        for (int token = 0; token < tokens(); token++) {
            for (int layer = 0; layer < layers; layer++) {
                requireDistinct(token, layer, experts.count(), what);
            }
        }
    }

    private void requireDistinct(int token, int layer, int count, String what) {
        int from = at(token, layer);
        boolean noted = isNoted(token, layer);
        for (int i = from; i < from + perToken; i++) {
            boolean isId = noted ? ids[i] >= 0 && ids[i] < count : ids[i] == RoutingPorts.OWN_CHOICE;
            for (int j = from; noted && j < i; j++) {
                isId &= ids[i] != ids[j];
            }
            if (!isId) {
                throw new IllegalArgumentException(
                        what + ": token " + token + ", layer " + layer + " went through experts "
                                + Arrays.toString(Arrays.copyOfRange(ids, from, from + perToken)) + ", which are not "
                                + perToken
                                + " different ones of " + count);
            }
        }
    }
}
