package dev.millrace.runtime.metrics;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.WireFormat;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/**
 * TensorBoard's message {@code Event}, as far as we write it: wall time (1), step (2), version of the file (3), and a summary (5) of
 * values (1), each with a tag (1) and a number (2). The fields in brackets are those of TensorFlow's {@code event.proto} and
 * {@code summary.proto}.
 */
final class EventRecord {
    private static final String VERSION = "brain.Event:2";

    private static final int WALL_TIME = 1;
    private static final int STEP = 2;
    private static final int FILE_VERSION = 3;
    private static final int SUMMARY = 5;
    private static final int VALUE = 1;
    private static final int TAG = 1;
    private static final int SIMPLE_VALUE = 2;

    /** That of a record without a step, such as the one that a file begins with. */
    static final long NO_STEP = -1;

    private EventRecord() {}

    /** What every file begins with. */
    static byte[] ofVersion(double wallSeconds) {
        return message(out -> {
            out.writeDouble(WALL_TIME, wallSeconds);
            out.writeString(FILE_VERSION, VERSION);
        });
    }

    /** All numbers of a step: together in one record, so that a step is there whole or not at all. */
    static byte[] ofStep(double wallSeconds, long step, List<Reading> readings) {
        byte[] summary = message(out -> {
            for (Reading reading : readings) {
                out.writeByteArray(VALUE, message(value -> {
                    value.writeString(TAG, reading.curve());
                    value.writeFloat(SIMPLE_VALUE, (float) reading.value());
                }));
            }
        });
        return message(out -> {
            out.writeDouble(WALL_TIME, wallSeconds);
            out.writeInt64(STEP, step);
            out.writeByteArray(SUMMARY, summary);
        });
    }

    /** The step of a record; {@link #NO_STEP} of one without. */
    static long step(byte[] record) {
        try {
            CodedInputStream in = CodedInputStream.newInstance(record);
            for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
                if (WireFormat.getTagFieldNumber(tag) == STEP) {
                    return in.readInt64();
                }
                in.skipField(tag);
            }
            return NO_STEP;
        } catch (IOException e) {
            throw new UncheckedIOException("a record with a right checksum is no event", e);
        }
    }

    private interface Fields {
        void write(CodedOutputStream out) throws IOException;
    }

    private static byte[] message(Fields fields) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            CodedOutputStream out = CodedOutputStream.newInstance(bytes);
            fields.write(out);
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }
}
