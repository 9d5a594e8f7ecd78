package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.TransactionalWriter;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.errors.FencedInstanceIdException;

/**
 * Tells an instance that another one has replaced from one that the group takes for its own ghost.
 *
 * <p>A coordinator that stood still for longer than a session may find two requests of one process to join, both without a member's
 * id, and takes the first for an older process of the same name: it fences it as it would fence one that was replaced. Who has
 * the name is therefore written down when an instance starts, as of every other role, and looked up when it is fenced.
 *
 * <p>Between those two moments it holds no client.
 */
final class InstanceOwner {
    private static final int TRANSACTION_TIMEOUT_MS = 10_000;

    private final TransactionalWriter writer;

    /** @param name what the instance's transactional ids begin with */
    InstanceOwner(LogConnection connection, String name) {
        this.writer = TransactionalWriter.of(connection, name, TRANSACTION_TIMEOUT_MS, Map.of("client.id", name));
    }

    /** Whether a failure says that the group gave the instance's name to another member. */
    static boolean isFenced(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof FencedInstanceIdException) {
                return true;
            }
        }
        return false;
    }

    /**
     * Takes the name over the first time, and makes sure of it after that, as often as it takes and the patience lasts.
     *
     * @param stopped true gives it up
     * @return false if it was given up
     * @throws dev.millrace.log.transaction.TakenOverException if this instance had the name, and a newer one has it now
     */
    boolean own(BooleanSupplier stopped) {
        try {
            return writer.takeOver(stopped, () -> {});
        } finally {
            writer.close();
        }
    }
}
