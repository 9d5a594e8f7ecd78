package dev.millrace.schemas.packed;

import org.apache.avro.LogicalType;
import org.apache.avro.Schema;

/**
 * Logical type of a packed vector: {@code packed-int32}, {@code packed-float32} or {@code packed-int8} over
 * {@code bytes}, elements little-endian without gaps.
 */
public final class PackedType extends LogicalType {
    private final int elementBytes;

    PackedType(String name, int elementBytes) {
        super(name);
        this.elementBytes = elementBytes;
    }

    public static boolean isPacked(Schema schema) {
        return schema.getLogicalType() instanceof PackedType;
    }

    /** Size of one element; a vector of n elements has n times as many bytes. */
    public int elementBytes() {
        return elementBytes;
    }

    @Override
    public void validate(Schema schema) {
        super.validate(schema);
        if (schema.getType() != Schema.Type.BYTES) {
            throw new IllegalArgumentException(getName() + " packs its elements into bytes, it cannot be put on "
                    + schema.getType().getName());
        }
    }
}
