package dev.millrace.topology;

import dev.millrace.log.Passing;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.errors.StreamsException;

/** What a failure of the engine means. The engine wraps whatever happens in a thread; what it wraps says what it is. */
final class EngineFailure {
    private EngineFailure() {}

    /** Whether another thread in place of the one that failed may succeed. */
    static boolean mayPass(Throwable thrown) {
        Throwable cause = thrown;
        while (cause instanceof StreamsException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return !(cause instanceof StreamsException) && Passing.mayPass(cause);
    }

    /** As a sentence. */
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

    /** What was wrapped, and is wrapped around nothing itself. */
    static Throwable root(Throwable thrown) {
        Throwable root = thrown;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }
}
