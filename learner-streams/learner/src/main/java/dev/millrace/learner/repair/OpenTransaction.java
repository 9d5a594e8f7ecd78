package dev.millrace.learner.repair;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.admin.AbortTransactionSpec;

/**
 * A transaction that nobody has ended, and that holds back whoever reads what is committed.
 *
 * @param transactionalId under which it is written; empty if its coordinator knows nothing of it, so that nobody will ever end it
 * @param openFor since its first record; since its last one where only that is known
 * @param at each partition that it holds back, as the cluster can be told to abort it there
 */
public record OpenTransaction(String transactionalId, Duration openFor, List<AbortTransactionSpec> at) {
    public OpenTransaction {
        at = List.copyOf(at);
    }
}
