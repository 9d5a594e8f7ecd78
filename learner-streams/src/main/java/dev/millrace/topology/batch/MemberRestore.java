package dev.millrace.topology.batch;

import dev.millrace.topology.batch.AssemblyStore.MemberPlace;
import dev.millrace.schemas.deadletter.RefusedException;
import dev.millrace.topology.fetch.RecordFetcher;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.state.EventTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.api.Record;

/** Brings back the members that are in no batch yet, from their places in the store and their trajectories on the log. */
final class MemberRestore {

    /**
     * What was brought back.
     *
     * @param members in the order of their offsets, each with when it came
     * @param lost by rollout id: members whose trajectories the log no longer holds
     */
    record Restored(Map<Member, Long> members, Map<String, MemberPlace> lost) {
    }

    private MemberRestore() {
    }

    static Restored restore(
        AssemblyStore store, TopicPartition trajectories, RecordFetcher fetcher, RecordReader<AssemblyArrival> reader) {
        Map<String, MemberPlace> lost = new HashMap<>();
        TreeMap<Long, String> byOffset = new TreeMap<>();
        store.forEachMember((rolloutId, place) -> {
            lost.put(rolloutId, place);
            byOffset.put(place.offset(), rolloutId);
        });
        Map<Member, Long> members = new LinkedHashMap<>();
        if (!byOffset.isEmpty()) {
            long[] offsets = byOffset.keySet().stream().mapToLong(Long::longValue).toArray();
            for (Member member : read(fetcher.fetch(trajectories, offsets), reader)) {
                members.put(member, lost.remove(member.rolloutId()).sinceMs());
            }
        }
        return new Restored(members, new TreeMap<>(lost));
    }

    private static List<Member> read(List<ConsumerRecord<byte[], byte[]>> records, RecordReader<AssemblyArrival> reader) {
        List<Member> members = new ArrayList<>(records.size());
        for (ConsumerRecord<byte[], byte[]> record : records) {
            long completeMs = EventTime.of(record, record.timestamp());
            Record<byte[], byte[]> raw = new Record<>(record.key(), record.value(), completeMs, record.headers());
            try {
                TrajectoryArrival arrival =
                    (TrajectoryArrival) reader.read(raw, record.partition(), record.offset()).orElseThrow();
                members.add(Member.of(arrival.trajectory(), record.partition(), record.offset(), completeMs));
            } catch (RefusedException e) {
                throw new IllegalStateException("the trajectory at " + record.topic() + "-" + record.partition() + "@"
                    + record.offset() + " was accepted when it came and is refused now: " + e.getMessage(), e);
            }
        }
        return members;
    }
}
