package dev.millrace.runtime.pipeline;

import dev.millrace.schemas.registry.SchemaRegistryUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * Runs each role on its own thread, in a thread group of its name, and stops them in start order.
 *
 * <p>The first role that fails, or ends without being asked to, is remembered; the others continue until they are
 * stopped, so that each can finish in order. A role inherits the starting thread's logging context and adds its name as
 * {@code role}. Used by one thread.
 */
public final class RoleThreads implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RoleThreads.class);

    private final Map<Role, Thread> threads = new LinkedHashMap<>();
    private final AtomicReference<RoleFailedException> failure = new AtomicReference<>();
    private final Duration patience;
    private volatile boolean stopping;

    /** @param patience time limit to stop all roles together; a role that exceeds it counts as failed */
    public RoleThreads(Duration patience) {
        this.patience = patience;
    }

    public void start(Role role) {
        Map<String, String> run = MDC.getCopyOfContextMap();
        Thread thread = new Thread(
                new ThreadGroup(role.name()), // threads that the role starts are in it too
                () -> {
                    if (run != null) {
                        MDC.setContextMap(run);
                    }
                    MDC.put("role", role.name());
                    run(role);
                },
                role.name());
        thread.setDaemon(true); // a role that does not stop is reported and must not keep the process alive
        threads.put(role, thread);
        thread.start();
    }

    private void run(Role role) {
        try {
            role.run().run();
            if (!stopping && !role.endsByItself()) {
                fail(new RoleFailedException(role.name(), "ended without a stop request", null));
            }
        } catch (SchemaRegistryUnavailableException e) {
            if (stopping) {
                LOG.warn("the {} stopped while it waited for the schema registry: {}", role.name(), e.getMessage());
            } else {
                fail(new RoleFailedException(role.name(), String.valueOf(e.getMessage()), e));
            }
        } catch (Throwable e) { // an Error of one role must reach the person, not only its thread
            fail(new RoleFailedException(role.name(), e.getMessage() == null ? e.toString() : e.getMessage(), e));
        }
    }

    private void fail(RoleFailedException happened) {
        if (!failure.compareAndSet(null, happened)) {
            Objects.requireNonNull(failure.get(), "a failure stays").addSuppressed(happened);
        }
    }

    /** True once a started role has ended for any reason. */
    public boolean hasEnded(Role role) {
        return !Objects.requireNonNull(threads.get(role), role::name).isAlive();
    }

    public Optional<RoleFailedException> failure() {
        return Optional.ofNullable(failure.get());
    }

    /**
     * Stops every role, waiting for each before the next; a role that does not stop in time becomes a failure.
     *
     * <p>The time limit is for all roles together: without a cluster every role hangs. Roles that come after the limit
     * are still asked to stop.
     */
    public void stop() {
        stopping = true;
        long deadlineNanos = System.nanoTime() + patience.toNanos();
        List<String> hanging = new ArrayList<>();
        threads.forEach((role, thread) -> {
            role.stop().run();
            try {
                thread.join(Math.max(1, (deadlineNanos - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            if (thread.isAlive()) {
                hanging.add(role.name());
            }
        });
        threads.clear();
        for (String name : hanging) {
            fail(new RoleFailedException(
                    name, "did not stop within the " + patience.toSeconds() + " s that all roles share", null));
        }
    }

    @Override
    public void close() {
        stop();
    }
}
