package dev.millrace.topology.batch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeMap;

/** The members of one prompt that have come so far. Confined to one task. */
final class Group {
    private final String groupId;
    private final long ordinal;
    private final int size;
    private final long sinceMs;
    private final TreeMap<Integer, Member> members = new TreeMap<>();

    /** @param sinceMs when its first member came, on the task's activity clock */
    Group(Member first, long sinceMs) {
        this.groupId = first.sample().groupId();
        this.ordinal = first.sample().ordinal();
        this.size = first.sample().groupSize();
        this.sinceMs = sinceMs;
        members.put(first.sample().index(), first);
    }

    String groupId() {
        return groupId;
    }

    long ordinal() {
        return ordinal;
    }

    /** How many members it is to have. */
    int size() {
        return size;
    }

    long sinceMs() {
        return sinceMs;
    }

    boolean has(int sampleIndex) {
        return members.containsKey(sampleIndex);
    }

    void add(Member member) {
        members.put(member.sample().index(), member);
    }

    /** It leaves on its own. */
    void remove(Member member) {
        members.remove(member.sample().index());
    }

    boolean isComplete() {
        return members.size() == size;
    }

    /** In the order of their sample indexes. */
    List<Member> members() {
        return new ArrayList<>(members.values());
    }

    /** Offset of the member that came last. */
    long lastOffset() {
        return members.values().stream()
                .mapToLong(member -> member.place().offset())
                .max()
                .orElseThrow();
    }

    /** Oldest version that sampled a token of the members that have come. */
    long oldestVersion() {
        return members.values().stream().mapToLong(Member::oldestVersion).min().orElseThrow();
    }

    /** True if there is nothing to choose between its members: all rewards are the same. */
    boolean hasZeroVariance() {
        Collection<Member> all = members.values();
        double first = members.firstEntry().getValue().reward();
        return all.stream().allMatch(member -> member.reward() == first);
    }
}
