package dev.millrace.schemas.serde;

import org.apache.kafka.common.errors.SerializationException;

/** The bytes are not a record of the expected kind; not retryable. */
public final class MalformedRecordException extends SerializationException {
    private static final long serialVersionUID = 1L;

    /** Reason, from a closed list that can be counted by. */
    public enum Flaw {
        /** There are fewer bytes than the header has. */
        EMPTY,
        /** The first byte is not 0. */
        WRONG_MAGIC_BYTE,
        /** No schema has the id in the header. */
        UNKNOWN_SCHEMA,
        /** The id is that of another kind of record. */
        OTHER_RECORD,
        /** A version of the record that this version of Millrace cannot read. */
        INCOMPATIBLE_SCHEMA,
        /** The bytes end before the record does. */
        TRUNCATED,
        /** The record ends before the bytes do. */
        TRAILING_BYTES,
        /** A value that its type does not allow. */
        INVALID_VALUE
    }

    private final Flaw flaw;

    MalformedRecordException(Flaw flaw, String message) {
        super(message);
        this.flaw = flaw;
    }

    MalformedRecordException(Flaw flaw, String message, Throwable cause) {
        super(message, cause);
        this.flaw = flaw;
    }

    public Flaw flaw() {
        return flaw;
    }
}
