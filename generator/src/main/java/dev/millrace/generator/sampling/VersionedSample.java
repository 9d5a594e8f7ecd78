package dev.millrace.generator.sampling;

import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.VersionSpan;
import java.util.List;

/**
 * A sample that is asked for, and which version is to sample which of its tokens.
 *
 * @param index of the sample in its group, which decides about its draws
 * @param versions by response position, in order and without gaps; the last continues to the end, wherever that is
 */
public record VersionedSample(PromptRequest request, int index, List<VersionSpan> versions) {

    public VersionedSample {
        versions = List.copyOf(versions);
        if (versions.isEmpty()) {
            throw new IllegalArgumentException(
                    "sample " + index + " of " + request.getGroupId() + " names no version to be sampled by");
        }
    }

    long versionAt(int position) {
        for (VersionSpan span : versions) {
            if (position < span.getEnd()) {
                return span.getVersion();
            }
        }
        return versions.get(versions.size() - 1).getVersion();
    }
}
