package dev.millrace.schemas.rollout;

/**
 * A parsed sample name, {@code rollout_id = group_id / sample_index}.
 *
 * @param groupId 1 to {@value #MAX_GROUP_ID} characters
 * @param sampleIndex at least 0
 */
public record SampleName(String groupId, int sampleIndex) {
    static final int MAX_GROUP_ID = 512;

    public String rolloutId() {
        return groupId + "/" + sampleIndex;
    }

    /**
     * Parses a rollout id.
     *
     * @throws RefusedException if the rollout id is not the group id, a slash and a number below the bound
     */
    public static SampleName of(String rolloutId, String groupId, int maxGroupSize) throws RefusedException {
        if (groupId.isEmpty() || groupId.length() > MAX_GROUP_ID) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "group_id",
                    "group_id must have 1 to " + MAX_GROUP_ID + " characters: " + groupId.length());
        }
        int slash = groupId.length();
        if (!rolloutId.startsWith(groupId) || rolloutId.length() <= slash + 1 || rolloutId.charAt(slash) != '/') {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "rollout_id",
                    "rollout_id must be group_id, a slash and sample_index: rollout_id='" + cut(rolloutId)
                            + "', group_id='" + cut(groupId) + "'");
        }
        int index = decimal(rolloutId, slash + 1);
        if (index < 0 || index >= maxGroupSize) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "rollout_id",
                    "rollout_id must end in a sample index below " + maxGroupSize + ", without leading zeros: '"
                            + cut(rolloutId.substring(slash + 1)) + "'");
        }
        return new SampleName(groupId, index);
    }

    /** The number that starts at {@code from}; -1 if it is not a canonical number. */
    private static int decimal(String text, int from) {
        int digits = text.length() - from;
        if (digits > 9 || digits > 1 && text.charAt(from) == '0') {
            return -1;
        }
        int value = 0;
        for (int i = from; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < '0' || c > '9') {
                return -1;
            }
            value = value * 10 + (c - '0');
        }
        return value;
    }

    private static String cut(String text) {
        return text.length() <= MAX_GROUP_ID ? text : text.substring(0, MAX_GROUP_ID) + "...";
    }
}
