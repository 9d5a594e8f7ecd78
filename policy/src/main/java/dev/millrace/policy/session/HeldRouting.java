package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RoutingPorts;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import java.util.Arrays;

/** The routing of every token fed so far, slot by slot; holds nothing of a model without experts. */
final class HeldRouting {
    private final DecoderShape shape;
    private final int perToken;
    private final RoutedExperts[] ofSlot;

    HeldRouting(DecoderShape shape, int slots, int capacity) {
        this.shape = shape;
        this.perToken = shape.traits().experts().perToken();
        this.ofSlot = new RoutedExperts[perToken == 0 ? 0 : slots];
        Arrays.setAll(ofSlot, slot -> RoutedExperts.unknown(shape, capacity));
    }

    /** Returns whether the model has routing to hold. */
    boolean isNeeded() {
        return perToken > 0;
    }

    RoutedExperts of(int slot, int tokens) {
        return ofSlot[slot].of(tokens);
    }

    /** Copies the routing of another slot's first tokens into a slot. */
    void copy(HeldRouting of, int from, int to, int tokens) {
        if (isNeeded()) {
            RoutedExperts source = of.ofSlot[from];
            int size = source.at(tokens, 0);
            System.arraycopy(source.ids(), 0, ofSlot[to].ids(), 0, size);
            System.arraycopy(source.weights(), 0, ofSlot[to].weights(), 0, size);
        }
    }

    /** Sets the routing of a slot's first tokens from another sequence. */
    void give(int slot, RoutedExperts of, int tokens) {
        int size = of.at(tokens, 0);
        System.arraycopy(of.ids(), 0, ofSlot[slot].ids(), 0, size);
        System.arraycopy(of.weights(), 0, ofSlot[slot].weights(), 0, size);
    }

    void bind(Session.Binding binding) {
        for (int layer = 0; isNeeded() && layer < shape.layers(); layer++) {
            bind(binding, layer);
        }
    }

    void bindKnown(Session.Binding binding) {
        for (int layer = 0; isNeeded() && layer < shape.layers() - 1; layer++) {
            bind(binding, layer);
        }
    }

    private static void bind(Session.Binding binding, int layer) {
        binding.output(RoutingPorts.experts(layer), Place.HOST);
        binding.output(RoutingPorts.weights(layer), Place.HOST);
    }

    /** Records the routing of a decode call: outputs [count, steps.length, experts of a token]. */
    void take(Session.Result result, int[] lengths, int[] steps) {
        for (int layer = 0; isNeeded() && layer < shape.layers(); layer++) {
            RoutingOutput of = RoutingOutput.read(result, layer, shape);
            for (int slot = 0; slot < steps.length; slot++) {
                for (int step = 0; step < steps[slot]; step++) {
                    of.put(step * steps.length + slot, ofSlot[slot], lengths[slot] - 1 + step, layer);
                }
            }
        }
    }

    /**
     * Records the routing of a rectangle of known tokens: outputs [rows * length, experts of a token]; the last layer
     * has none.
     */
    void takeKnown(Session.Result result, int row, int length, int slot, int past, int tokens) {
        for (int layer = 0; isNeeded() && layer < shape.layers(); layer++) {
            if (layer == shape.layers() - 1) {
                for (int t = 0; t < tokens; t++) {
                    forget(slot, past + t, layer);
                }
            } else {
                RoutingOutput of = RoutingOutput.read(result, layer, shape);
                for (int t = 0; t < tokens; t++) {
                    of.put(row * length + t, ofSlot[slot], past + t, layer);
                }
            }
        }
    }

    private void forget(int slot, int token, int layer) {
        int at = ofSlot[slot].at(token, layer);
        Arrays.fill(ofSlot[slot].ids(), at, at + perToken, (byte) RoutingPorts.OWN_CHOICE);
        Arrays.fill(ofSlot[slot].weights(), at, at + perToken, 0f);
    }
}
