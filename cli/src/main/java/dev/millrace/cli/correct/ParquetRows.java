package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.luben.zstd.Zstd;
import dev.millrace.runtime.RefusedRequestException;
import io.airlift.compress.lz4.Lz4Decompressor;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Objects;
import java.util.zip.GZIPInputStream;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.MessageColumnIO;
import org.apache.parquet.io.RecordReader;
import org.apache.parquet.schema.MessageType;
import org.jspecify.annotations.Nullable;
import org.xerial.snappy.Snappy;

/** Rows of a Parquet file as the objects of equal JSON lines. Holds one row group at a time. */
public final class ParquetRows implements AutoCloseable {
    static final long MOST_ROWS = 10_000_000;
    /** A row group is held in memory compressed. */
    private static final int SHARE_OF_MEMORY = 4;

    private final Path path;
    private final LocalInputFile input;
    private final ParquetFileReader reader;
    private final MessageColumnIO columns;
    private final ParquetFields fields;
    private @Nullable RecordReader<ObjectNode> rows;
    private long left;
    private int groups;
    private int number;

    /** Returns whether a file name is that of a Parquet file. */
    static boolean isOne(Path file) {
        return file.toString().toLowerCase(Locale.ROOT).endsWith(".parquet");
    }

    /** @throws RefusedRequestException if it is not a Parquet file, or has an unsupported column */
    public ParquetRows(Path path) {
        this.path = path;
        this.input = new LocalInputFile(path);
        try {
            reader = ParquetFileReader.open(
                    input,
                    ParquetReadOptions.builder(new PlainParquetConfiguration())
                            .withCodecFactory(new PageCodecs())
                            .build());
        } catch (IOException | RuntimeException e) {
            throw refused(e);
        }
        try {
            MessageType schema = reader.getFileMetaData().getSchema();
            fields = new ParquetFields(path, schema);
            columns = new ColumnIOFactory().getColumnIO(schema);
            if (reader.getRecordCount() > MOST_ROWS) {
                throw new RefusedRequestException(path + " has " + reader.getRecordCount() + " rows, and at most "
                        + MOST_ROWS + " are read; split it");
            }
        } catch (RuntimeException e) {
            closeQuietly(e);
            throw e instanceof RefusedRequestException ? e : refused(e);
        }
    }

    /** Number of the row returned last by {@link #next}, from 1. */
    int number() {
        return number;
    }

    /**
     * Returns the next row; null after the last.
     *
     * @throws RefusedRequestException if the file cannot be read further
     */
    public @Nullable ObjectNode next() {
        try {
            while (left == 0) {
                PageReadStore pages = nextRowGroup();
                if (pages == null) {
                    return null;
                }
                left = pages.getRowCount();
                rows = columns.getRecordReader(pages, fields);
            }
            left--;
            number++;
            return Objects.requireNonNull(rows).read();
        } catch (IOException | RuntimeException e) {
            throw e instanceof RefusedRequestException refused ? refused : refused(e);
        }
    }

    private @Nullable PageReadStore nextRowGroup() throws IOException {
        if (groups < reader.getRowGroups().size()) {
            long bytes = reader.getRowGroups().get(groups++).getCompressedSize();
            long most = Runtime.getRuntime().maxMemory() / SHARE_OF_MEMORY;
            if (bytes > most) {
                throw new RefusedRequestException(
                        path + ": row group " + groups + " has " + bytes + " bytes, and at most " + most
                                + " are held in memory; write smaller row groups (pyarrow: row_group_size), or give Java more memory with -Xmx");
            }
        }
        return reader.readNextRowGroup();
    }

    private RefusedRequestException refused(Exception e) {
        String where = number == 0 ? "" : " behind row " + number;
        String why = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return new RefusedRequestException(
                path + " cannot be read as Parquet" + where + ": " + why.replace(input.toString(), "it")
                        + "; write it again, or give JSON lines",
                e);
    }

    private void closeQuietly(RuntimeException because) {
        try {
            reader.close();
        } catch (IOException e) {
            because.addSuppressed(e);
        }
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }

    /** Supported page compressions; the library's own factory needs Hadoop for some of them. */
    static final class PageCodecs implements CompressionCodecFactory {
        /** Bounds a page, normally about a megabyte, against corrupt files. */
        private static final int MOST_BYTES = 1 << 30;

        @Override
        public BytesInputCompressor getCompressor(CompressionCodecName codec) {
            throw new UnsupportedOperationException("files are only read");
        }

        @Override
        public BytesInputDecompressor getDecompressor(CompressionCodecName codec) {
            return new BytesInputDecompressor() {
                @Override
                public BytesInput decompress(BytesInput bytes, int size) throws IOException {
                    return BytesInput.from(
                            decompressed(codec, bytes.toInputStream().readAllBytes(), size));
                }

                @Override
                public void decompress(ByteBuffer input, int compressedSize, ByteBuffer output, int size)
                        throws IOException {
                    byte[] compressed = new byte[compressedSize];
                    input.get(compressed);
                    output.put(decompressed(codec, compressed, size));
                }

                @Override
                public void release() {}
            };
        }

        private static byte[] decompressed(CompressionCodecName codec, byte[] compressed, int size) throws IOException {
            if (size < 0 || size > MOST_BYTES) {
                throw new IOException("a page of " + size + " bytes, where at most " + MOST_BYTES + " are read");
            }
            if (codec == CompressionCodecName.UNCOMPRESSED) {
                return compressed;
            }
            byte[] page = new byte[size];
            long length = switch (codec) {
                case SNAPPY ->
                    Snappy.uncompressedLength(compressed) == size
                            ? Snappy.uncompress(compressed, 0, compressed.length, page, 0)
                            : -1;
                case ZSTD -> Zstd.decompressByteArray(page, 0, size, compressed, 0, compressed.length);
                case GZIP -> {
                    try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(compressed))) {
                        yield in.readNBytes(page, 0, size);
                    }
                }
                case LZ4_RAW -> new Lz4Decompressor().decompress(compressed, 0, compressed.length, page, 0, size);
                default ->
                    throw new IOException("pages are compressed with " + codec
                            + ", which is not read; write them with zstd, snappy, gzip or lz4_raw");
            };
            if (length != size) {
                throw new IOException("a page does not decompress to its " + size + " bytes");
            }
            return page;
        }

        @Override
        public void release() {}
    }
}
