package dev.millrace.topology;

import java.util.HexFormat;

/**
 * Which settings a task decides by, in 32 bytes.
 *
 * @param form of the text that it was taken of, at least 1; 0 where a run was made before there were forms, and nothing can
 *     be said about its settings
 * @param sha256 of the text in UTF-8, lower-case hexadecimal; empty for form 0
 */
public record Fingerprint(int form, String sha256) {
    /** Bytes of the hash. */
    public static final int BYTES = 32;

    /** Of a run that was made before there were forms. */
    public static final Fingerprint UNKNOWN = new Fingerprint(0, "");

    public Fingerprint {
        if (form < 0) {
            throw new IllegalArgumentException("a form must be at least 0: " + form);
        }
        if (sha256.length() != (form == 0 ? 0 : 2 * BYTES)) {
            throw new IllegalArgumentException("a SHA-256 has " + 2 * BYTES + " hexadecimal digits: '" + sha256 + "'");
        }
    }

    /** From the bytes of the hash. */
    public static Fingerprint of(int form, byte[] sha256) {
        return new Fingerprint(form, HexFormat.of().formatHex(sha256));
    }

    /** The bytes of the hash. */
    public byte[] bytes() {
        return HexFormat.of().parseHex(sha256);
    }

    @Override
    public String toString() {
        return form == 0 ? "of an unknown form" : sha256 + " (form " + form + ")";
    }
}
