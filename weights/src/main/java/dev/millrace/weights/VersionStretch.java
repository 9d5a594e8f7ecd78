package dev.millrace.weights;

/**
 * How much of the weights topic has to stay for one version to be read: from its anchor's first chunk to the end.
 *
 * @param topic on which the chunks lie
 * @param neededFrom offset of the anchor's first chunk
 * @param logBegins first offset that is still there
 * @param bytesSince size of all versions from the anchor on, as they were written; what the topic holds of them is at most that where it is
 *     compressed
 */
public record VersionStretch(String topic, long neededFrom, long logBegins, long bytesSince) {
    /** Whether everything that the version rests on is still there. */
    public boolean isKept() {
        return logBegins <= neededFrom;
    }
}
