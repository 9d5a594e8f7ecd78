package dev.millrace.topology;

import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;
import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;

/**
 * Copies of a record that each change one number to an extreme of its type, or by one. Covers every numeric field of
 * the schema at any depth.
 */
public final class Extremes {
    private static final float[] LOG_PROBS = {
        0,
        -0.0f,
        1,
        -9999,
        -350,
        -350.0001f,
        -1e30f,
        Float.MIN_VALUE,
        -Float.MAX_VALUE,
        Float.NaN,
        Float.NEGATIVE_INFINITY,
        Float.POSITIVE_INFINITY
    };

    private Extremes() {}

    /** One of them. */
    public record Extreme<T>(String field, Object value, T record) {
        @Override
        public String toString() {
            return field + "=" + value;
        }
    }

    /** All of a record; records in unions are changed where they are there. */
    public static <T extends SpecificRecord> List<Extreme<T>> of(T record) {
        List<Extreme<T>> all = new ArrayList<>();
        visit(record, "", changed -> all.add(new Extreme<>(changed.field(), changed.value(), copyOf(record))));
        return all;
    }

    private static <T extends SpecificRecord> T copyOf(T record) {
        return SpecificData.get().deepCopy(record.getSchema(), record);
    }

    private record Changed(String field, Object value) {}

    /** Puts each extreme into its field, tells of it, and puts back what was there. */
    private static void visit(SpecificRecord record, String place, Consumer<Changed> each) {
        for (Schema.Field field : record.getSchema().getFields()) {
            Object before = record.get(field.pos());
            String name = place + field.name();
            visit(before, field.schema(), name, value -> record.put(field.pos(), value), each);
            record.put(field.pos(), before);
        }
    }

    private static void visit(Object value, Schema schema, String name, Consumer<Object> put, Consumer<Changed> each) {
        switch (schema.getType()) {
            case INT, LONG, FLOAT, DOUBLE -> {
                for (Object extreme : numbers((Number) value, schema.getType())) {
                    put.accept(extreme);
                    each.accept(new Changed(name, extreme));
                }
            }
            case UNION ->
                schema.getTypes().stream()
                        .filter(branch -> branch.getType() != Schema.Type.NULL)
                        .findFirst()
                        .filter(branch -> value != null || isNumber(branch))
                        .ifPresent(branch -> visit(value == null ? number(branch) : value, branch, name, put, each));
            case RECORD -> visit((SpecificRecord) value, name + ".", each);
            case ARRAY -> {
                List<Object> copy = new ArrayList<>((List<?>) value);
                for (int i = 0; i < Math.min(1, copy.size()); i++) {
                    int at = i;
                    Object before = copy.get(at);
                    visit(
                            before,
                            schema.getElementType(),
                            name + "[]",
                            element -> {
                                copy.set(at, element);
                                put.accept(copy);
                            },
                            each);
                    copy.set(at, before);
                }
            }
            case MAP -> {
                Map<Object, Object> copy = new LinkedHashMap<>((Map<?, ?>) value);
                visit(
                        0.0,
                        schema.getValueType(),
                        name + "{}",
                        element -> {
                            copy.put("extreme", element);
                            put.accept(copy);
                        },
                        each);
            }
            case BYTES -> {
                if (name.endsWith("log_probs") && ((ByteBuffer) value).remaining() >= Float.BYTES) {
                    for (float extreme : LOG_PROBS) {
                        float[] vector = PackedFloats.toArray((ByteBuffer) value);
                        vector[0] = extreme;
                        put.accept(PackedFloats.of(vector));
                        each.accept(new Changed(name + "[0]", extreme));
                    }
                }
            }
            default -> {}
        }
    }

    private static boolean isNumber(Schema schema) {
        return switch (schema.getType()) {
            case INT, LONG, FLOAT, DOUBLE -> true;
            default -> false;
        };
    }

    private static Number number(Schema schema) {
        return schema.getType() == Schema.Type.DOUBLE ? 0.0 : 0;
    }

    private static List<Object> numbers(Number value, Schema.Type type) {
        if (type == Schema.Type.DOUBLE || type == Schema.Type.FLOAT) {
            double was = value.doubleValue();
            return DoubleStream.of(
                            0,
                            -0.0,
                            -1,
                            -was,
                            Math.nextUp(was),
                            Math.nextDown(was),
                            Double.MAX_VALUE,
                            -Double.MAX_VALUE,
                            Double.MIN_VALUE,
                            Double.NaN,
                            Double.POSITIVE_INFINITY,
                            Double.NEGATIVE_INFINITY)
                    .mapToObj(each -> type == Schema.Type.DOUBLE ? boxed(each) : boxed((float) each))
                    .toList();
        }
        long was = value.longValue();
        boolean isInt = type == Schema.Type.INT;
        long most = isInt ? Integer.MAX_VALUE : Long.MAX_VALUE;
        long least = isInt ? Integer.MIN_VALUE : Long.MIN_VALUE;
        return LongStream.of(0, 1, -1, -was, was + 1, was - 1, most, most - 1, least, least + 1, 1_000_000, 1 << 30)
                .mapToObj(each -> isInt ? boxed((int) each) : boxed(each))
                .toList();
    }

    private static Object boxed(Object number) {
        return number;
    }
}
