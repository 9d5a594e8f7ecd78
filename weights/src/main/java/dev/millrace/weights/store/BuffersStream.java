package dev.millrace.weights.store;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The bytes of buffers, one after the other, without moving these. */
final class BuffersStream extends InputStream {
    private final List<ByteBuffer> buffers;
    private int next;

    BuffersStream(List<ByteBuffer> buffers) {
        this.buffers = buffers.stream().map(ByteBuffer::duplicate).toList();
    }

    @Override
    public int read() {
        ByteBuffer from = current();
        return from == null ? -1 : from.get() & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, into.length);
        if (length == 0) {
            return 0;
        }
        ByteBuffer from = current();
        if (from == null) {
            return -1;
        }
        int count = Math.min(length, from.remaining());
        from.get(into, offset, count);
        return count;
    }

    private @Nullable ByteBuffer current() {
        while (next < buffers.size() && !buffers.get(next).hasRemaining()) {
            next++;
        }
        return next < buffers.size() ? buffers.get(next) : null;
    }
}
