package dev.millrace.infra.broker;

import java.util.OptionalLong;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ControllerRequestContext;

/**
 * What the controller of a lone broker remembers of the broker's life before a crash: a registration, under which every
 * partition still has a leader.
 *
 * <p>Left alone, it lasts for {@code broker.session.timeout.ms}. Until then the new life may not register, yet it finds
 * itself leader of everything, so its transaction coordinator takes up what was open: commits that lack their markers, and
 * transactions that time out. Nobody can take the markers yet. When the old registration then runs out, no partition has a
 * leader for a moment, and the coordinator drops these markers as those of deleted topics and calls the transactions
 * complete: their records are never committed nor aborted, and readers of committed records wait behind them
 * forever. So the registration is taken out before the broker starts; a second process cannot be meant by it, because the
 * directory's lock is ours.
 */
final class StaleBrokerRegistration {
    private static final long RETRY_MS = 20;

    private final Controller controller;
    private final int nodeId;

    /** @param nodeId of the broker, alone in its cluster */
    StaleBrokerRegistration(Controller controller, int nodeId) {
        this.controller = controller;
        this.nodeId = nodeId;
    }

    /**
     * Takes it out of the cluster; returns when that is done, or when there is none.
     *
     * @throws BrokerException if the controller is not active after so long
     */
    void forget(long limitMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
        while (!isForgotten()) {
            if (System.nanoTime() - deadline > 0) {
                throw new BrokerException("the controller was not active within start_timeout_ms=" + limitMs
                        + "; raise it if the disk is slow");
            }
            pause();
        }
    }

    private boolean isForgotten() {
        try {
            controller
                    .unregisterBroker(
                            new ControllerRequestContext(
                                    new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty()),
                            nodeId)
                    .join();
            return true;
        } catch (CompletionException e) {
            if (e.getCause() instanceof BrokerIdNotRegisteredException) {
                return true;
            }
            if (e.getCause() instanceof NotControllerException) { // not yet: it reads its log first
                return false;
            }
            throw e;
        }
    }

    private static void pause() {
        try {
            Thread.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BrokerException("the start of the broker was interrupted");
        }
    }
}
