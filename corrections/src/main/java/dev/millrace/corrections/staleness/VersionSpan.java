package dev.millrace.corrections.staleness;

/**
 * Tokens {@code [start, end)} of one sequence, counted from its first packed token, that one policy version sampled.
 *
 * @param version version of the weights, not negative
 * @param start first token
 * @param end one past the last token
 */
public record VersionSpan(long version, int start, int end) {
    public VersionSpan {
        if (version < 0) {
            throw new IllegalArgumentException("version must not be negative: version=" + version);
        }
        if (start < 0 || end < start) {
            throw new IllegalArgumentException(
                    "a span needs 0 <= start <= end: start=" + start + ", end=" + end + ", version=" + version);
        }
    }
}
