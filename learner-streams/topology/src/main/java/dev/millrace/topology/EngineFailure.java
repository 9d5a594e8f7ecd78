package dev.millrace.topology;

import dev.millrace.log.Passing;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.errors.StreamsException;

/**
 * Interprets a failure of the engine. The engine wraps every exception of a thread; the wrapped cause tells the kind of
 * failure.
 */
final class EngineFailure {
    private EngineFailure() {}

    /** Whether a replacement of the failed thread may succeed. */
    static boolean mayPass(Throwable thrown) {
        Throwable cause = thrown;
        while (cause instanceof StreamsException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return !(cause instanceof StreamsException) && Passing.mayPass(cause);
    }

    /** Returns the failure with an explanation. */
    static TopologyException explained(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof MissingSourceTopicException) {
                return new TopologyException(
                        "a topic of the run does not exist: " + cause.getMessage() + "; create the run first", thrown);
            }
        }
        Throwable root = root(thrown);
        return new TopologyException(
                "the topology stopped: "
                        + (root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage()),
                thrown);
    }

    /** Returns the innermost cause. */
    static Throwable root(Throwable thrown) {
        Throwable root = thrown;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }
}
