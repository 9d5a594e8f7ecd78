package dev.millrace.learner.repair;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.TopicPartition;

/** Transactions that are open on the topics of a run, and ending them. Uses an admin client that stays the caller's. */
final class OpenTransactions {
    private final Admin admin;
    private final long nowMs;

    OpenTransactions(Admin admin, long nowMs) {
        this.admin = admin;
        this.nowMs = nowMs;
    }

    /** Those that are open, by transactional id. */
    List<OpenTransaction> on(Set<String> topics) {
        Map<Long, List<AbortTransactionSpec>> at = new TreeMap<>();
        Map<Long, Long> lastMs = new HashMap<>();
        CommittedOffsets.answer(admin.describeProducers(partitions(topics)).all())
                .forEach((partition, producers) -> producers.activeProducers().stream()
                        .filter(state -> state.currentTransactionStartOffset().isPresent())
                        .forEach(state -> {
                            at.computeIfAbsent(state.producerId(), unseen -> new ArrayList<>())
                                    .add(spec(partition, state));
                            lastMs.merge(state.producerId(), state.lastTimestamp(), Math::max);
                        }));
        if (at.isEmpty()) {
            return List.of();
        }
        Map<Long, String> ids = new HashMap<>();
        for (TransactionListing each :
                CommittedOffsets.answer(admin.listTransactions().all())) {
            ids.put(each.producerId(), each.transactionalId());
        }
        Map<String, TransactionDescription> described =
                CommittedOffsets.answer(admin.describeTransactions(at.keySet().stream()
                                .filter(ids::containsKey)
                                .map(ids::get)
                                .toList())
                        .all());
        return at.entrySet().stream()
                .map(open -> {
                    String id = ids.getOrDefault(open.getKey(), "");
                    OptionalLong begunMs = Optional.ofNullable(described.get(id))
                            .map(TransactionDescription::transactionStartTimeMs)
                            .orElse(OptionalLong.empty());
                    long sinceMs = begunMs.orElse(lastMs.getOrDefault(open.getKey(), nowMs));
                    return new OpenTransaction(
                            begunMs.isPresent() ? id : "",
                            Duration.ofMillis(Math.max(0, nowMs - sinceMs)),
                            open.getValue());
                })
                .toList();
    }

    private Collection<TopicPartition> partitions(Set<String> topics) {
        List<TopicPartition> partitions = new ArrayList<>();
        CommittedOffsets.answer(admin.describeTopics(topics).allTopicNames())
                .forEach((topic, described) -> described
                        .partitions()
                        .forEach(partition -> partitions.add(new TopicPartition(topic, partition.partition()))));
        return partitions;
    }

    private static AbortTransactionSpec spec(TopicPartition partition, ProducerState state) {
        return new AbortTransactionSpec(
                partition,
                state.producerId(),
                (short) state.producerEpoch(),
                state.coordinatorEpoch().orElse(-1));
    }

    /** Ends them: who writes under their ids is shut out, and what no coordinator knows is aborted where it lies. */
    void abort(List<OpenTransaction> open) {
        List<String> ids = open.stream()
                .map(OpenTransaction::transactionalId)
                .filter(id -> !id.isEmpty())
                .toList();
        if (!ids.isEmpty()) {
            CommittedOffsets.answer(admin.fenceProducers(ids).all());
        }
        open.stream()
                .filter(each -> each.transactionalId().isEmpty())
                .flatMap(each -> each.at().stream())
                .forEach(spec ->
                        CommittedOffsets.answer(admin.abortTransaction(spec).all()));
    }
}
