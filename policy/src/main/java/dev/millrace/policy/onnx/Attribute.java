package dev.millrace.policy.onnx;

import com.google.protobuf.ByteString;
import dev.millrace.policy.onnx.proto.AttributeProto;
import dev.millrace.policy.onnx.proto.AttributeProto.AttributeType;
import dev.millrace.policy.onnx.proto.GraphProto;

/** Factories for the attributes of a node. */
final class Attribute {
    private Attribute() {}

    static AttributeProto of(String name, long value) {
        return named(name, AttributeType.INT).setI(value).build();
    }

    static AttributeProto of(String name, float value) {
        return named(name, AttributeType.FLOAT).setF(value).build();
    }

    static AttributeProto of(String name, String value) {
        return named(name, AttributeType.STRING)
                .setS(ByteString.copyFromUtf8(value))
                .build();
    }

    static AttributeProto of(String name, int[] values) {
        AttributeProto.Builder builder = named(name, AttributeType.INTS);
        for (int value : values) {
            builder.addInts(value);
        }
        return builder.build();
    }

    static AttributeProto of(String name, GraphProto graph) {
        return named(name, AttributeType.GRAPH).setG(graph).build();
    }

    private static AttributeProto.Builder named(String name, AttributeType type) {
        return AttributeProto.newBuilder().setName(name).setType(type);
    }
}
