package dev.millrace.weights;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** SHA-256 over byte buffers, as lower-case hex. Not thread-safe; one instance makes one hash. */
final class ContentHash {
    private final MessageDigest digest;

    ContentHash() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256, this one has not", e);
        }
    }

    /** Adds the bytes from position to limit; the buffer's position stays. */
    ContentHash add(ByteBuffer data) {
        digest.update(data.duplicate());
        return this;
    }

    /** The hash of everything added; the instance is spent. */
    String hex() {
        return HexFormat.of().formatHex(digest.digest());
    }

    static String of(ByteBuffer data) {
        return new ContentHash().add(data).hex();
    }
}
