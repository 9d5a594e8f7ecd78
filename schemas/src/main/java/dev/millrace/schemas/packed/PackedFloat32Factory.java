package dev.millrace.schemas.packed;

import org.apache.avro.LogicalType;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;

/** Registers {@code packed-float32} with Avro; found through {@code META-INF/services}. */
public final class PackedFloat32Factory implements LogicalTypes.LogicalTypeFactory {
    static final PackedType TYPE = new PackedType("packed-float32", Float.BYTES);

    @Override
    public LogicalType fromSchema(Schema schema) {
        return TYPE;
    }

    @Override
    public String getTypeName() {
        return TYPE.getName();
    }
}
