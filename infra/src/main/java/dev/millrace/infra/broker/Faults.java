package dev.millrace.infra.broker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArraySet;
import kafka.server.FaultHandlerFactory;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.server.fault.FaultHandler;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a broker's faults go: the log, and for those it cannot live with, a future.
 *
 * <p>Kafka answers a fatal fault by ending the JVM, which is right for a broker and wrong for the program it is
 * embedded in. It has two ways of doing so: a fault handler, which is ours per broker, and a static exit
 * procedure, which is one per JVM; the latter reports to all brokers that run here.
 */
final class Faults implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Faults.class);
    private static final Set<Faults> RUNNING = new CopyOnWriteArraySet<>();

    private final String directory;
    private final CompletableFuture<BrokerException> fatal = new CompletableFuture<>();

    Faults(String directory) {
        this.directory = directory;
        synchronized (RUNNING) {
            RUNNING.add(this);
            Exit.setHaltProcedure(Faults::ended);
            Exit.setExitProcedure(Faults::ended);
        }
    }

    /** Completed with the first fault that the broker cannot live with. */
    CompletableFuture<BrokerException> fatal() {
        return fatal;
    }

    FaultHandlerFactory factory() {
        return (name, isFatal, action) -> new Handler(name, isFatal, action);
    }

    /** The JVM's exit procedures are Kafka's own again when the last broker is gone. */
    @Override
    public void close() {
        synchronized (RUNNING) {
            RUNNING.remove(this);
            if (RUNNING.isEmpty()) {
                Exit.resetHaltProcedure();
                Exit.resetExitProcedure();
            }
        }
    }

    private void fail(String what, @Nullable Throwable cause) {
        fatal.complete(new BrokerException(
                "the broker in " + directory + " cannot go on: " + what + (cause == null ? "" : ": " + cause), cause));
    }

    private static void ended(int status, @Nullable String message) {
        String what = "Kafka asked to end the process with status " + status + (message == null ? "" : ", " + message);
        RUNNING.forEach(faults -> faults.fail(what + "; " + faults.freeSpace(), null));
    }

    /** A full disk is the most frequent cause of a broker's end. */
    private String freeSpace() {
        try {
            return (Files.getFileStore(Path.of(directory)).getUsableSpace() >> 20) + " MiB are free on its disk";
        } catch (IOException e) {
            return "its disk cannot be asked for free space (" + e.getMessage() + ")";
        }
    }

    private final class Handler implements FaultHandler {
        private final String name;
        private final boolean isFatal;
        private final Runnable action;

        Handler(String name, boolean isFatal, Runnable action) {
            this.name = name;
            this.isFatal = isFatal;
            this.action = action;
        }

        @Override
        public RuntimeException handleFault(String message, Throwable cause) {
            LOG.error("broker in {}, {}: {}", directory, name, message, cause);
            action.run();
            if (isFatal) {
                fail(name + ": " + message, cause);
            }
            return new BrokerException(name + ": " + message, cause);
        }
    }
}
