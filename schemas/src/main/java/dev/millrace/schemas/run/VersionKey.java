package dev.millrace.schemas.run;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.WeightChunk;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Key of a policy version's records: {@code policy_id/epoch/version} of its manifest, and
 * {@code policy_id/epoch/version/tensor/chunk} of its chunks.
 *
 * <p>The epoch is part of the key because a new epoch continues the version numbers from its branch: otherwise
 * compaction could replace the older epoch's version 5. A policy id has no slash, so a key can be parsed; a tensor's
 * name may have some.
 *
 * @param epoch of the run, at least 0
 * @param version at least 0
 */
public record VersionKey(String policyId, int epoch, long version) {
    private static final Pattern FORM =
            Pattern.compile("([A-Za-z0-9._-]{1,100})/(0|[1-9]\\d{0,8})/(0|[1-9]\\d{0,17})(/.*)?");

    public static VersionKey of(RunIdentity run, long version) {
        return new VersionKey(run.policyId(), run.epoch(), version);
    }

    public static VersionKey of(PolicyVersion manifest) {
        return new VersionKey(manifest.getPolicyId(), manifest.getEpoch(), manifest.getVersion());
    }

    public static byte[] of(WeightChunk chunk) {
        VersionKey version = new VersionKey(chunk.getPolicyId(), chunk.getEpoch(), chunk.getVersion());
        return utf8(version + "/" + chunk.getTensor() + "/" + chunk.getChunk());
    }

    /**
     * Returns the version of a manifest's or a chunk's key.
     *
     * @param key as received, may be null
     * @return empty if it is not such a key
     */
    public static Optional<VersionKey> parse(byte[] key) {
        if (key == null) {
            return Optional.empty();
        }
        Matcher form = FORM.matcher(new String(key, StandardCharsets.UTF_8));
        return form.matches()
                ? Optional.of(
                        new VersionKey(form.group(1), Integer.parseInt(form.group(2)), Long.parseLong(form.group(3))))
                : Optional.empty();
    }

    public byte[] bytes() {
        return utf8(toString());
    }

    @Override
    public String toString() {
        return policyId + "/" + epoch + "/" + version;
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
