package dev.millrace.schemas.rollout;

import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;

/** Whether a recorded routing is one of as many tokens as were fed. Which experts a model has, the scorer knows. */
final class RoutingCheck {
    private static final int NOT_NOTED = -1;

    private RoutingCheck() {}

    static void require(RecordedRouting routing, int fed, String field) throws RefusedException {
        long size = (long) fed * routing.getLayers() * routing.getExpertsPerToken();
        ByteBuffer experts = routing.getExperts();
        if (routing.getLayers() < 1
                || routing.getExpertsPerToken() < 1
                || experts.remaining() != size
                || routing.getWeights().remaining() != size * Float.BYTES) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    field,
                    "a routing has an expert and a weight for each of " + fed + " fed tokens, "
                            + routing.getLayers() + " layers and " + routing.getExpertsPerToken()
                            + " experts of a token: " + experts.remaining() + " experts, "
                            + routing.getWeights().remaining() / Float.BYTES + " weights");
        }
        for (int i = 0; i < experts.remaining(); i++) {
            if (experts.get(experts.position() + i) < NOT_NOTED
                    || !Float.isFinite(PackedFloats.get(routing.getWeights(), i))) {
                throw new RefusedException(
                        RefusalReason.SAMPLING,
                        field,
                        "an expert is " + NOT_NOTED + " or more and its weight finite: expert "
                                + experts.get(experts.position() + i) + ", weight "
                                + PackedFloats.get(routing.getWeights(), i) + " at place " + i);
            }
        }
    }
}
