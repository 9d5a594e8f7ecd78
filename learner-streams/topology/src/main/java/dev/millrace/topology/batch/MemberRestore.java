package dev.millrace.topology.batch;

import dev.millrace.topology.batch.AssemblyStore.MemberPlace;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** Brings back the members that are in no batch yet, from their places in the store and their trajectories on the log. */
final class MemberRestore {

    /**
     * What was brought back.
     *
     * @param members in the order of their offsets, each with when it came
     * @param lost by rollout id: members whose trajectories the log no longer holds
     */
    record Restored(Map<Member, Long> members, Map<String, MemberPlace> lost) {}

    private MemberRestore() {}

    static Restored restore(AssemblyStore store, MemberVectors vectors) {
        Map<String, MemberPlace> lost = new HashMap<>();
        TreeMap<Long, String> byOffset = new TreeMap<>();
        store.forEachMember((rolloutId, place) -> {
            lost.put(rolloutId, place);
            byOffset.put(place.offset(), rolloutId);
        });
        Map<Member, Long> members = new LinkedHashMap<>();
        vectors.read(byOffset.keySet().stream().mapToLong(Long::longValue).toArray(), (arrival, completeMs) -> {
            Member member = Member.of(arrival.trajectory(), arrival.partition(), arrival.offset(), completeMs);
            vectors.keep(member, arrival.trajectory());
            members.put(
                    member,
                    Objects.requireNonNull(lost.remove(member.rolloutId()), member::rolloutId)
                            .sinceMs());
        });
        return new Restored(members, new TreeMap<>(lost));
    }
}
