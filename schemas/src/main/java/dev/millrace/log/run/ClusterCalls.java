package dev.millrace.log.run;

import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.KafkaFuture;

/** Waits for the cluster's answers, at most so long, and says what it waited for. */
final class ClusterCalls {
    /** The client has the same limit and gives a better reason; its answer should come first. */
    private static final long SLACK_MS = 2_000;

    private final long timeoutMs;

    ClusterCalls(long timeoutMs) {
        this.timeoutMs = timeoutMs;
    }

    /**
     * The answer.
     *
     * @param what the rest of "the cluster could not ...", such as "create topic x"
     * @throws ExecutionException with the cluster's refusal as its cause
     */
    <T> T answer(KafkaFuture<T> future, String what) throws ExecutionException {
        try {
            return future.get(timeoutMs + SLACK_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new LogSetupException("the cluster did not " + what + " within timeout_ms=" + timeoutMs, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LogSetupException("interrupted while waiting for the cluster to " + what, e);
        }
    }

    /** The answer, where every refusal is one for the user. */
    <T> T required(KafkaFuture<T> future, String what) {
        try {
            return answer(future, what);
        } catch (ExecutionException e) {
            Throwable cause = cause(e);
            throw new LogSetupException("the cluster could not " + what + ": " + cause.getMessage(), cause);
        }
    }

    /** Why a call failed; what Kafka wraps it in says nothing. */
    static Throwable cause(ExecutionException e) {
        return Objects.requireNonNullElse(e.getCause(), e);
    }
}
