package dev.millrace.weights;

/**
 * Range of the weights topic that one version needs: from its anchor's first chunk to the end.
 *
 * @param neededFrom offset of the anchor's first chunk
 * @param logBegins log start offset
 * @param bytesSince uncompressed size of all versions from the anchor on; an upper bound of their size on the topic
 */
public record VersionStretch(String topic, long neededFrom, long logBegins, long bytesSince) {
    public boolean isKept() {
        return logBegins <= neededFrom;
    }
}
