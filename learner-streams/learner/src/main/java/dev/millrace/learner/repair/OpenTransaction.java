package dev.millrace.learner.repair;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.admin.AbortTransactionSpec;

/**
 * A transaction that was never ended and blocks read_committed consumers.
 *
 * @param transactionalId id of its writer; empty if the coordinator does not know the transaction, so that it will
 *     never end by itself
 * @param openFor time since its first record, or since its last one if only that is known
 * @param at each blocked partition, with the parameters to abort it there
 */
public record OpenTransaction(String transactionalId, Duration openFor, List<AbortTransactionSpec> at) {
    public OpenTransaction {
        at = List.copyOf(at);
    }
}
