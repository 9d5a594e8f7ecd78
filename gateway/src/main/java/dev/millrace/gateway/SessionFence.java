package dev.millrace.gateway;

import dev.millrace.generator.sampling.PromptSource;
import dev.millrace.generator.sampling.PromptSource.Membership;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Decides whether this gateway may acknowledge what is on the log: only while the generators' group still counts on
 * it, so that a successor reads it. A stalled gateway acknowledges nothing. Thread-safe, except {@link #answer}.
 */
final class SessionFence {
    private record Question(Session session, CompletableFuture<Void> confirmed) {}

    private final SessionTable sessions;
    private final SessionLog log;
    private final BlockingQueue<Question> questions = new LinkedBlockingQueue<>();

    SessionFence(SessionTable sessions, SessionLog log) {
        this.sessions = sessions;
        this.log = log;
    }

    SessionTable sessions() {
        return sessions;
    }

    SessionLog log() {
        return log;
    }

    /**
     * @return completes once the group confirms; fails with {@link RefusedCallException} if the session may be
     *     another's
     */
    CompletableFuture<Void> confirm(Session session) {
        CompletableFuture<Void> confirmed = new CompletableFuture<>();
        questions.add(new Question(session, confirmed));
        return confirmed;
    }

    /**
     * Logs that this gateway continues another one's session, so that turn numbers stay unique.
     *
     * @return completes when it may be played
     */
    CompletableFuture<Void> takeUp(Session session, long nowMs) {
        return log.takenUp(session, nowMs).thenCompose(written -> confirm(session));
    }

    /** @throws RefusedCallException if it may not be played, or not yet */
    void requireTakenUp(Session session, long limitMs, long nowMs) {
        CompletableFuture<Void> takenUp = session.takenUp();
        try {
            await(takenUp, limitMs);
        } catch (RefusedCallException e) {
            if (takenUp.isCompletedExceptionally()) {
                session.isTakenUp(takeUp(session, nowMs)); // for a call that comes later
            }
            throw e;
        }
    }

    static void await(CompletableFuture<Void> done, long limitMs) {
        try {
            done.get(limitMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw RefusedCallException.notNow("log", "the cluster has not taken it within " + limitMs + " ms; retry");
        } catch (ExecutionException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw cause instanceof RefusedCallException refused
                    ? refused
                    : RefusedCallException.notNow("log", "it could not be written to the log: " + cause.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw RefusedCallException.notNow("closing", "the gateway is being closed");
        }
    }

    /** Asks the group once for all earlier records; for the role's thread. */
    void answer(PromptSource prompts) {
        List<Question> asked = new ArrayList<>();
        questions.drainTo(asked);
        if (asked.isEmpty()) {
            return;
        }
        Membership membership = prompts.membership();
        if (membership == Membership.NOT_NOW) {
            questions.addAll(asked);
            return;
        }
        for (Question each : asked) {
            if (membership == Membership.CONFIRMED && sessions.isHere(each.session())) {
                each.confirmed().complete(null);
            } else {
                each.confirmed()
                        .completeExceptionally(RefusedCallException.notNow(
                                "session_elsewhere",
                                "another gateway may have the session "
                                        + each.session().id().text() + " by now; retry"));
            }
        }
    }
}
