package dev.millrace.schemas.rollout;

import dev.millrace.schemas.BlobReference;
import java.util.regex.Pattern;

/** Whether a reference can name a blob; the blob itself is not looked at. */
final class BlobCheck {
    private static final Pattern SHA256 = Pattern.compile("[0-9a-f]{64}");

    private BlobCheck() {}

    static void require(BlobReference blob, String field) throws RefusedException {
        if (!SHA256.matcher(blob.getSha256()).matches()) {
            throw blob(field + ".sha256", "64 lower-case hex digits", blob.getSha256());
        }
        if (blob.getUri().isEmpty()) {
            throw blob(field + ".uri", "where the bytes are", "''");
        }
        if (blob.getBytes() < 0) {
            throw blob(field + ".bytes", "at least 0", blob.getBytes());
        }
        for (long extent : blob.getShape()) {
            if (extent < 0) {
                throw blob(field + ".shape", "extents of at least 0", blob.getShape());
            }
        }
    }

    private static RefusedException blob(String field, String bound, Object value) {
        return new RefusedException(RefusalReason.BLOB, field, field + " must be " + bound + ": " + value);
    }
}
