package dev.millrace.policy.onnx;

import dev.millrace.policy.onnx.proto.TensorProto.DataType;

/** The element types our graphs use, with their numbers in the ONNX format. */
public enum ElementType {
    FLOAT(DataType.FLOAT),
    INT64(DataType.INT64),
    INT32(DataType.INT32),
    INT8(DataType.INT8),
    BOOL(DataType.BOOL),
    BFLOAT16(DataType.BFLOAT16),
    DOUBLE(DataType.DOUBLE);

    private final DataType dataType;

    ElementType(DataType dataType) {
        this.dataType = dataType;
    }

    public int number() {
        return dataType.getNumber();
    }

    /** Size of one element. */
    public int bytes() {
        return switch (this) {
            case FLOAT, INT32 -> 4;
            case INT64, DOUBLE -> 8;
            case INT8, BOOL -> 1;
            case BFLOAT16 -> 2;
        };
    }
}
