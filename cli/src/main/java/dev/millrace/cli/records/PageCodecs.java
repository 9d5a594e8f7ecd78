package dev.millrace.cli.records;

import com.github.luben.zstd.Zstd;
import io.airlift.compress.lz4.Lz4Decompressor;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.GZIPInputStream;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.xerial.snappy.Snappy;

/** How pages are compressed that can be read; the library's own factory asks Hadoop for some of these. */
final class PageCodecs implements CompressionCodecFactory {
    /** A page is about a megabyte, and of a corrupt file its size is not believed. */
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
                return BytesInput.from(decompressed(codec, bytes.toInputStream().readAllBytes(), size));
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
