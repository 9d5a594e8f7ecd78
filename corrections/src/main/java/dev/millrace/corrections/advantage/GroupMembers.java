package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

final class GroupMembers {
    private GroupMembers() {}

    static int[][] of(TokenBatch batch) {
        int[] sizes = new int[batch.groupCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            sizes[batch.group(s)]++;
        }
        int[][] members = new int[sizes.length][];
        for (int g = 0; g < sizes.length; g++) {
            members[g] = new int[sizes[g]];
        }
        int[] filled = new int[sizes.length];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            members[batch.group(s)][filled[batch.group(s)]++] = s;
        }
        return members;
    }
}
