package dev.millrace.weights;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.commons.codec.digest.DigestUtils;

/** SHA-256 over byte buffers, as lower-case hex. Not thread-safe; one instance per hash. */
final class ContentHash {
    private final MessageDigest digest = DigestUtils.getSha256Digest();

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
