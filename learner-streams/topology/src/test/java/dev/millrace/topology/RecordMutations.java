package dev.millrace.topology;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;

/** Random damage to records, seeded: to their fields, so that they can still be written, or to their bytes. */
final class RecordMutations {
    private static final long[] NUMBERS = {
        0, 1, -1, 2, 3, 7, 8, 127, 4096, Integer.MAX_VALUE, Integer.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE
    };
    private static final double[] DOUBLES = {
        0,
        -0.0,
        1,
        -1,
        0.5,
        1e300,
        -1e300,
        Double.NaN,
        Double.POSITIVE_INFINITY,
        Double.NEGATIVE_INFINITY,
        Double.MIN_VALUE
    };

    private final Random random;

    RecordMutations(Random random) {
        this.random = random;
    }

    /** Changes one field, at any depth, to something that its type allows. */
    void damageField(SpecificRecord record) {
        List<Schema.Field> fields = record.getSchema().getFields();
        Schema.Field field = fields.get(random.nextInt(fields.size()));
        record.put(field.pos(), damaged(record.get(field.pos()), field.schema()));
    }

    private Object damaged(Object value, Schema schema) {
        return switch (schema.getType()) {
            case STRING -> damaged((String) value);
            case INT -> (int) NUMBERS[random.nextInt(NUMBERS.length)];
            case LONG -> NUMBERS[random.nextInt(NUMBERS.length)];
            case DOUBLE -> DOUBLES[random.nextInt(DOUBLES.length)];
            case BYTES -> damaged((ByteBuffer) value);
            case ENUM ->
                SpecificData.get()
                        .createEnum(
                                schema.getEnumSymbols()
                                        .get(random.nextInt(
                                                schema.getEnumSymbols().size())),
                                schema);
            case ARRAY -> damaged((List<?>) value);
            case UNION ->
                random.nextBoolean() ? null : value != null ? damaged(value, branch(schema)) : filled(branch(schema));
            case MAP -> damaged((Map<?, ?>) value, schema.getValueType());
            case RECORD -> {
                damageField((SpecificRecord) value);
                yield value;
            }
            default -> value;
        };
    }

    private static Schema branch(Schema union) {
        return union.getTypes().stream()
                .filter(s -> s.getType() != Schema.Type.NULL)
                .findFirst()
                .orElseThrow();
    }

    /** Something where there was nothing: of three elements, as the sample rollouts are long. */
    private Object filled(Schema schema) {
        return switch (schema.getType()) {
            case STRING -> "a reason";
            case BYTES -> ByteBuffer.wrap(new byte[12]);
            case BOOLEAN -> random.nextBoolean();
            case ARRAY -> List.of(filled(schema.getElementType()));
            case MAP -> Map.of("component", filled(schema.getValueType()));
            case UNION -> random.nextBoolean() ? null : filled(branch(schema));
            case RECORD -> {
                SpecificRecord record = (SpecificRecord) SpecificData.get().newRecord(null, schema);
                schema.getFields().forEach(field -> record.put(field.pos(), filled(field.schema())));
                yield record;
            }
            default -> damaged((Object) null, schema);
        };
    }

    private String damaged(String text) {
        return switch (random.nextInt(5)) {
            case 0 -> "";
            case 1 -> text + "/1";
            case 2 -> "x".repeat(random.nextInt(3000));
            case 3 -> text.isEmpty() ? "/" : text.substring(1);
            default -> "g" + random.nextInt(50);
        };
    }

    private ByteBuffer damaged(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return ByteBuffer.wrap(damageBytes(copy));
    }

    private List<?> damaged(List<?> list) {
        List<Object> copy = new ArrayList<>(list);
        int what = random.nextInt(4);
        if (what == 0 || copy.isEmpty()) {
            return List.of();
        }
        int at = random.nextInt(copy.size());
        if (what == 1) {
            copy.add(copy.get(at));
        } else if (what == 2) {
            copy.remove(at);
        } else if (copy.get(at) instanceof SpecificRecord record) {
            damageField(record);
        }
        return copy;
    }

    private Map<?, ?> damaged(Map<?, ?> map, Schema values) {
        Map<Object, Object> copy = new HashMap<>(map);
        copy.put(damaged("component"), damaged("", values));
        return copy;
    }

    /** Flips, cuts, lengthens or replaces. */
    byte[] damageBytes(byte[] bytes) {
        int what = random.nextInt(6);
        if (what == 0 || bytes.length == 0) {
            byte[] other = new byte[random.nextInt(64)];
            random.nextBytes(other);
            return other;
        }
        if (what == 1) {
            return Arrays.copyOf(bytes, random.nextInt(bytes.length));
        }
        if (what == 2) {
            return Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(20));
        }
        byte[] copy = bytes.clone();
        for (int i = 0; i <= random.nextInt(4); i++) {
            copy[random.nextInt(copy.length)] ^= (byte) (1 << random.nextInt(8));
        }
        return copy;
    }
}
