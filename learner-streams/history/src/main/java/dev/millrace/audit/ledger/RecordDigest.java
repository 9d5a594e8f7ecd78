package dev.millrace.audit.ledger;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * What tells a copy of a record from another record of the same name: SHA-256 of its value.
 *
 * @param hex of 64 digits
 */
record RecordDigest(String hex) {
    static RecordDigest of(byte[] value) {
        try {
            return new RecordDigest(HexFormat.of()
                    .formatHex(MessageDigest.getInstance("SHA-256").digest(value)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
