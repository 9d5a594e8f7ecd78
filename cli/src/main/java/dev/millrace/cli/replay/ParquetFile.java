package dev.millrace.cli.replay;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.conf.ParquetConfiguration;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.jspecify.annotations.Nullable;

/** Writes rows to a Parquet file, compressed with zstd. Holds one row group. Confined to one thread. */
final class ParquetFile<R> implements Closeable {
    private static final long ROW_GROUP_BYTES = 32L << 20;

    private final ParquetWriter<R> writer;
    private long rows;

    /** Types of a column. */
    enum Kind {
        INT,
        LONG,
        FLOAT,
        DOUBLE,
        TEXT,
        /** Of an {@code int[]}. */
        INTS,
        /** Of a map from text to numbers. */
        NUMBERS
    }

    /**
     * A column.
     *
     * @param value value of a row; null if absent
     */
    record Field<R>(String name, Kind kind, Function<? super R, ? extends @Nullable Object> value) {
        private Type type() {
            return switch (kind) {
                case INT -> Types.optional(PrimitiveTypeName.INT32).named(name);
                case LONG -> Types.optional(PrimitiveTypeName.INT64).named(name);
                case FLOAT -> Types.optional(PrimitiveTypeName.FLOAT).named(name);
                case DOUBLE -> Types.optional(PrimitiveTypeName.DOUBLE).named(name);
                case TEXT ->
                    Types.optional(PrimitiveTypeName.BINARY)
                            .as(LogicalTypeAnnotation.stringType())
                            .named(name);
                case INTS ->
                    Types.optionalList()
                            .requiredElement(PrimitiveTypeName.INT32)
                            .named(name);
                case NUMBERS ->
                    Types.optionalMap()
                            .key(Types.required(PrimitiveTypeName.BINARY)
                                    .as(LogicalTypeAnnotation.stringType())
                                    .named("key"))
                            .requiredValue(PrimitiveTypeName.DOUBLE)
                            .named(name);
            };
        }
    }

    /** @param file new file */
    ParquetFile(Path file, List<Field<R>> fields) throws IOException {
        writer = new Builder<>(file, fields).build();
    }

    void write(R row) throws IOException {
        writer.write(row);
        rows++;
    }

    long rows() {
        return rows;
    }

    @Override
    public void close() throws IOException {
        writer.close();
    }

    private static final class Builder<R> extends ParquetWriter.Builder<R, Builder<R>> {
        private final List<Field<R>> fields;

        Builder(Path file, List<Field<R>> fields) {
            super(new LocalOutputFile(file));
            this.fields = fields;
            withConf(new PlainParquetConfiguration());
            withCompressionCodec(CompressionCodecName.ZSTD);
            withRowGroupSize(ROW_GROUP_BYTES);
        }

        @Override
        protected Builder<R> self() {
            return this;
        }

        @Override
        @SuppressWarnings("deprecation") // abstract in the library
        protected WriteSupport<R> getWriteSupport(Configuration unused) {
            return new Rows<>(fields);
        }

        @Override
        protected WriteSupport<R> getWriteSupport(ParquetConfiguration unused) {
            return new Rows<>(fields);
        }
    }

    private static final class Rows<R> extends WriteSupport<R> {
        private final List<Field<R>> fields;
        private @Nullable RecordConsumer consumer;

        Rows(List<Field<R>> fields) {
            this.fields = fields;
        }

        private WriteContext context() {
            return new WriteContext(
                    new MessageType("row", fields.stream().map(Field::type).toList()), Map.of());
        }

        @Override
        @SuppressWarnings("deprecation") // abstract in the library
        public WriteContext init(Configuration unused) {
            return context();
        }

        @Override
        public WriteContext init(ParquetConfiguration unused) {
            return context();
        }

        @Override
        public void prepareForWrite(RecordConsumer recordConsumer) {
            consumer = recordConsumer;
        }

        @Override
        public void write(R row) {
            RecordConsumer out = Objects.requireNonNull(consumer);
            out.startMessage();
            for (int i = 0; i < fields.size(); i++) {
                Field<R> field = fields.get(i);
                Object value = field.value().apply(row);
                if (value != null) {
                    out.startField(field.name(), i);
                    write(out, field.kind(), value);
                    out.endField(field.name(), i);
                }
            }
            out.endMessage();
        }

        private static void write(RecordConsumer out, Kind kind, Object value) {
            switch (kind) {
                case INT -> out.addInteger(((Number) value).intValue());
                case LONG -> out.addLong(((Number) value).longValue());
                case FLOAT -> out.addFloat((Float) value);
                case DOUBLE -> out.addDouble(((Number) value).doubleValue());
                case TEXT -> out.addBinary(Binary.fromString(value.toString()));
                case INTS -> {
                    out.startGroup();
                    int[] list = (int[]) value;
                    if (list.length > 0) {
                        out.startField("list", 0);
                        for (int element : list) {
                            out.startGroup();
                            out.startField("element", 0);
                            out.addInteger(element);
                            out.endField("element", 0);
                            out.endGroup();
                        }
                        out.endField("list", 0);
                    }
                    out.endGroup();
                }
                case NUMBERS -> {
                    out.startGroup();
                    Map<?, ?> map = (Map<?, ?>) value;
                    if (!map.isEmpty()) {
                        out.startField("key_value", 0);
                        map.forEach((name, number) -> {
                            out.startGroup();
                            out.startField("key", 0);
                            out.addBinary(Binary.fromString(String.valueOf(name)));
                            out.endField("key", 0);
                            out.startField("value", 1);
                            out.addDouble((Double) number);
                            out.endField("value", 1);
                            out.endGroup();
                        });
                        out.endField("key_value", 0);
                    }
                    out.endGroup();
                }
            }
        }
    }
}
