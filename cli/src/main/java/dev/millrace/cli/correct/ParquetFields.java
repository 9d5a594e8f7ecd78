package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.FloatNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.millrace.runtime.RefusedRequestException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.io.api.RecordMaterializer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.jspecify.annotations.Nullable;

/**
 * Columns of a Parquet file as fields of an object: numbers, booleans, texts, lists of these in three-level,
 * two-level or repeated form, and numbers by name as a map or a group. A null is an absent field.
 */
final class ParquetFields extends RecordMaterializer<ObjectNode> {
    private final Path path;
    private final Group root;
    private ObjectNode row = JsonNodeFactory.instance.objectNode();

    /** @throws RefusedRequestException naming the unsupported column */
    ParquetFields(Path path, MessageType schema) {
        this.path = path;
        List<Converter> columns = new ArrayList<>();
        List<String> bare = new ArrayList<>();
        for (Type column : schema.getFields()) {
            String name = column.getName();
            if (column.isRepetition(Type.Repetition.REPEATED)) {
                bare.add(name);
                columns.add(single(column, value -> row.withArray(name).add(value)));
            } else {
                columns.add(field(column, value -> row.set(name, value)));
            }
        }
        root = new Group(columns, () -> {
            row = JsonNodeFactory.instance.objectNode();
            bare.forEach(row::putArray);
        });
    }

    @Override
    public ObjectNode getCurrentRecord() {
        return row;
    }

    @Override
    public GroupConverter getRootConverter() {
        return root;
    }

    private Converter field(Type column, Consumer<JsonNode> sink) {
        if (column.isPrimitive()) {
            return single(column, sink);
        }
        GroupType group = column.asGroupType();
        if (group.getLogicalTypeAnnotation() instanceof LogicalTypeAnnotation.ListLogicalTypeAnnotation
                && group.getFieldCount() == 1) {
            return list(group, sink);
        }
        if (group.getLogicalTypeAnnotation() instanceof LogicalTypeAnnotation.MapLogicalTypeAnnotation
                && group.getFieldCount() == 1
                && !group.getType(0).isPrimitive()
                && group.getType(0).asGroupType().getFieldCount() == 2) {
            return map(group, sink);
        }
        if (group.getLogicalTypeAnnotation() != null) {
            throw none(column);
        }
        ObjectNode[] object = new ObjectNode[1];
        List<Converter> parts = new ArrayList<>();
        for (Type part : group.getFields()) {
            parts.add(single(part, value -> object[0].set(part.getName(), value)));
        }
        return new Group(parts, () -> object[0] = JsonNodeFactory.instance.objectNode(), () -> sink.accept(object[0]));
    }

    private Converter list(GroupType column, Consumer<JsonNode> sink) {
        ArrayNode[] list = new ArrayNode[1];
        Type repeated = column.getType(0);
        Converter items;
        if (repeated.isPrimitive()) {
            items = single(repeated, value -> list[0].add(value));
        } else {
            GroupType item = repeated.asGroupType();
            if (item.getFieldCount() != 1) {
                throw none(column);
            }
            JsonNode[] element = new JsonNode[1];
            items = new Group(
                    List.of(single(item.getType(0), value -> element[0] = value)),
                    () -> element[0] = NullNode.getInstance(),
                    () -> list[0].add(element[0]));
        }
        return new Group(
                List.of(items), () -> list[0] = JsonNodeFactory.instance.arrayNode(), () -> sink.accept(list[0]));
    }

    private Converter map(GroupType column, Consumer<JsonNode> sink) {
        ObjectNode[] map = new ObjectNode[1];
        JsonNode[] entry = new JsonNode[2];
        GroupType pair = column.getType(0).asGroupType();
        Group pairs = new Group(
                List.of(
                        single(pair.getType(0), value -> entry[0] = value),
                        single(pair.getType(1), value -> entry[1] = value)),
                () -> entry[1] = NullNode.getInstance(),
                () -> map[0].set(entry[0].asText(), entry[1]));
        return new Group(
                List.of(pairs), () -> map[0] = JsonNodeFactory.instance.objectNode(), () -> sink.accept(map[0]));
    }

    /** A primitive value. */
    private Converter single(Type column, Consumer<JsonNode> sink) {
        if (!column.isPrimitive()) {
            throw none(column);
        }
        PrimitiveType type = column.asPrimitiveType();
        LogicalTypeAnnotation logical = type.getLogicalTypeAnnotation();
        boolean isPlain = logical == null;
        boolean isWhole = isPlain || logical instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation;
        boolean isUnsigned =
                logical instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation whole && !whole.isSigned();
        boolean isText = logical instanceof LogicalTypeAnnotation.StringLogicalTypeAnnotation
                || logical instanceof LogicalTypeAnnotation.EnumLogicalTypeAnnotation;
        boolean isHalf = logical instanceof LogicalTypeAnnotation.Float16LogicalTypeAnnotation;
        boolean isKnown = switch (type.getPrimitiveTypeName()) {
            case INT32 -> isWhole;
            case INT64 -> isWhole;
            case BOOLEAN, FLOAT, DOUBLE -> isPlain;
            case BINARY -> isText;
            case FIXED_LEN_BYTE_ARRAY -> isHalf;
            case INT96 -> false;
        };
        if (!isKnown) {
            throw none(column);
        }
        return new PrimitiveConverter() {
            @Override
            public void addInt(int value) {
                sink.accept(
                        isUnsigned && value < 0
                                ? LongNode.valueOf(Integer.toUnsignedLong(value))
                                : IntNode.valueOf(value));
            }

            @Override
            public void addLong(long value) {
                if (isUnsigned && value < 0) {
                    throw new IllegalArgumentException("column " + column.getName() + " has "
                            + Long.toUnsignedString(value) + ", and whole numbers are read up to " + Long.MAX_VALUE);
                }
                sink.accept(LongNode.valueOf(value));
            }

            @Override
            public void addFloat(float value) {
                sink.accept(FloatNode.valueOf(value));
            }

            @Override
            public void addDouble(double value) {
                sink.accept(DoubleNode.valueOf(value));
            }

            @Override
            public void addBoolean(boolean value) {
                sink.accept(BooleanNode.valueOf(value));
            }

            @Override
            public void addBinary(Binary value) {
                sink.accept(
                        isHalf
                                ? FloatNode.valueOf(
                                        Float.parseFloat(type.stringifier().stringify(value)))
                                : TextNode.valueOf(value.toStringUsingUTF8()));
            }
        };
    }

    private RefusedRequestException none(Type column) {
        return new RefusedRequestException(path + ": the column " + column.getName() + " is of the type "
                + column.toString().replaceAll("\\s+", " ")
                + ", and a field is a number, a text, a list of numbers, or numbers by name; leave it out or cast it");
    }

    /** Converter of a row group with actions before and after its parts. */
    private static final class Group extends GroupConverter {
        private final List<Converter> parts;
        private final Runnable begins;
        private final @Nullable Runnable ends;

        Group(List<Converter> parts, Runnable begins) {
            this(parts, begins, null);
        }

        Group(List<Converter> parts, Runnable begins, @Nullable Runnable ends) {
            this.parts = parts;
            this.begins = begins;
            this.ends = ends;
        }

        @Override
        public Converter getConverter(int fieldIndex) {
            return parts.get(fieldIndex);
        }

        @Override
        public void start() {
            begins.run();
        }

        @Override
        public void end() {
            if (ends != null) {
                ends.run();
            }
        }
    }
}
