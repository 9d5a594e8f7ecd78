package dev.millrace.audit.ledger;

import org.apache.commons.codec.digest.DigestUtils;

/**
 * What tells a copy of a record from another record of the same name: SHA-256 of its value.
 *
 * @param hex of 64 digits
 */
record RecordDigest(String hex) {
    static RecordDigest of(byte[] value) {
        return new RecordDigest(DigestUtils.sha256Hex(value));
    }
}
