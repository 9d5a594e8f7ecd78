package dev.millrace.schemas.serde;

import dev.millrace.schemas.serde.MalformedRecordException.Flaw;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import org.apache.avro.io.Decoder;
import org.apache.avro.util.Utf8;

/**
 * Decodes Avro's binary encoding from one array, with vectors as views of it.
 *
 * <p>Stricter than Avro's own decoder, because the input is untrusted: it refuses a number that does not fit its type,
 * a length beyond the end, a boolean that is neither 0 nor 1, and text that is not UTF-8. Lengths and counts are
 * checked against the remaining bytes before any allocation. Not thread-safe.
 */
final class RecordDecoder extends Decoder {
    private static final byte[] NONE = new byte[0];

    private byte[] bytes = NONE;
    private int at;
    private int end;

    void begin(byte[] source, int from) {
        bytes = source;
        at = from;
        end = source.length;
    }

    /** Releases the array. */
    void end() {
        bytes = NONE;
        at = 0;
        end = 0;
    }

    @Override
    public int remainingBytes() {
        return end - at;
    }

    @Override
    public void readNull() {
        // takes no bytes
    }

    @Override
    public boolean readBoolean() {
        require(1);
        byte value = bytes[at++];
        if (value != 0 && value != 1) {
            throw invalid("a boolean is 0 or 1, not " + value);
        }
        return value == 1;
    }

    @Override
    public int readInt() {
        long value = readLong();
        if (value != (int) value) {
            throw invalid("an int cannot be " + value);
        }
        return (int) value;
    }

    @Override
    public long readLong() {
        long raw = 0;
        for (int shift = 0; shift < Long.SIZE; shift += 7) {
            require(1);
            byte b = bytes[at++];
            raw |= (b & 0x7fL) << shift;
            if (b >= 0) {
                if (shift == 63 && b > 1) {
                    break;
                }
                return (raw >>> 1) ^ -(raw & 1);
            }
        }
        throw invalid("a number is longer than 64 bits");
    }

    @Override
    public float readFloat() {
        return Float.intBitsToFloat((int) readLittleEndian(Float.BYTES));
    }

    @Override
    public double readDouble() {
        return Double.longBitsToDouble(readLittleEndian(Double.BYTES));
    }

    @Override
    public Utf8 readString(Utf8 old) {
        return new Utf8(readString());
    }

    @Override
    public String readString() {
        int length = readLength();
        String text = new String(bytes, at, length, StandardCharsets.UTF_8);
        if (text.indexOf('\uFFFD') >= 0) { // a real replacement character, or the sign of invalid UTF-8
            requireUtf8(length);
        }
        at += length;
        return text;
    }

    @Override
    public void skipString() {
        readString();
    }

    /** A view of the array, never a copy. */
    @Override
    public ByteBuffer readBytes(ByteBuffer old) {
        int length = readLength();
        ByteBuffer view = ByteBuffer.wrap(bytes, at, length).slice();
        at += length;
        return view;
    }

    @Override
    public void skipBytes() {
        at += readLength();
    }

    @Override
    public void readFixed(byte[] target, int start, int length) {
        require(length);
        System.arraycopy(bytes, at, target, start, length);
        at += length;
    }

    @Override
    public void skipFixed(int length) {
        require(length);
        at += length;
    }

    @Override
    public int readEnum() {
        return readInt();
    }

    @Override
    public int readIndex() {
        return readInt();
    }

    @Override
    public long readArrayStart() {
        return readBlockCount();
    }

    @Override
    public long arrayNext() {
        return readBlockCount();
    }

    @Override
    public long readMapStart() {
        return readBlockCount();
    }

    @Override
    public long mapNext() {
        return readBlockCount();
    }

    @Override
    public long skipArray() {
        return skipBlocks();
    }

    @Override
    public long skipMap() {
        return skipBlocks();
    }

    /** Items of the next block; each takes at least one byte, since no record here has items without bytes. */
    private long readBlockCount() {
        long count = readLong();
        if (count < 0) {
            count = -count;
            readLength();
        }
        if (count < 0 || count > end - at) {
            throw truncated("a block of " + count + " items");
        }
        return count;
    }

    /** Skips blocks with a byte size; returns the item count of the first without one, 0 at the end. */
    private long skipBlocks() {
        while (true) {
            long count = readLong();
            if (count >= 0) {
                if (count > end - at) {
                    throw truncated("a block of " + count + " items");
                }
                return count;
            }
            at += readLength();
        }
    }

    private int readLength() {
        long length = readLong();
        if (length < 0) {
            throw invalid("a length cannot be " + length);
        }
        if (length > end - at) {
            throw truncated(length + " bytes");
        }
        return (int) length;
    }

    private long readLittleEndian(int count) {
        require(count);
        long value = 0;
        for (int i = 0; i < count; i++) {
            value |= (bytes[at + i] & 0xffL) << (8 * i);
        }
        at += count;
        return value;
    }

    private void require(int count) {
        if (count > end - at) {
            throw truncated(count == 1 ? "a byte" : count + " bytes");
        }
    }

    private void requireUtf8(int length) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, at, length));
        } catch (CharacterCodingException e) {
            throw invalid("text of " + length + " bytes is not UTF-8");
        }
    }

    private MalformedRecordException invalid(String sentence) {
        return new MalformedRecordException(Flaw.INVALID_VALUE, sentence + ", before byte " + at);
    }

    private MalformedRecordException truncated(String what) {
        return new MalformedRecordException(
                Flaw.TRUNCATED, what + " should follow at byte " + at + ", where " + (end - at) + " are left");
    }
}
