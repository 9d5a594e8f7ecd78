package dev.millrace.weights.store;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** The hash by which objects are known. */
final class Sha256 {
    private Sha256() {}

    static MessageDigest digest() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256, this one has not", e);
        }
    }
}
