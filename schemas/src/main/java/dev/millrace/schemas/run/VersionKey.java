package dev.millrace.schemas.run;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.WeightChunk;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The key of what belongs to one version of a policy: {@code policy_id/epoch/version} of its manifest, and
 * {@code policy_id/epoch/version/tensor/chunk} of its chunks.
 *
 * <p>The epoch is part of it because a run that goes another way counts its versions on from where it left: under
 * compaction its version 5 would otherwise take the place of the older epoch's. A policy id has no slash, so a key can be
 * taken apart; a tensor's name may have some.
 *
 * @param policyId policy
 * @param epoch of the run, at least 0
 * @param version at least 0
 */
public record VersionKey(String policyId, int epoch, long version) {
    private static final Pattern FORM =
            Pattern.compile("([A-Za-z0-9._-]{1,100})/(0|[1-9]\\d{0,8})/(0|[1-9]\\d{0,17})(/.*)?");

    /** The key of a version of this run. */
    public static VersionKey of(RunIdentity run, long version) {
        return new VersionKey(run.policyId(), run.epoch(), version);
    }

    /** The key under which a manifest belongs. */
    public static VersionKey of(PolicyVersion manifest) {
        return new VersionKey(manifest.getPolicyId(), manifest.getEpoch(), manifest.getVersion());
    }

    /** The key under which a chunk belongs. */
    public static byte[] of(WeightChunk chunk) {
        VersionKey version = new VersionKey(chunk.getPolicyId(), chunk.getEpoch(), chunk.getVersion());
        return utf8(version + "/" + chunk.getTensor() + "/" + chunk.getChunk());
    }

    /**
     * The version that a key is about, of a manifest or of a chunk.
     *
     * @param key as it came, may be null
     * @return empty if it is no such key
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

    /** The manifest's key as it goes to the log. */
    public byte[] bytes() {
        return utf8(toString());
    }

    /** The manifest's key as text. */
    @Override
    public String toString() {
        return policyId + "/" + epoch + "/" + version;
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
