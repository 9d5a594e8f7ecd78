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
 * Says of what is on the log whether this gateway may acknowledge it: only if the group of the generators counts on it after that,
 * so that whoever has the session later reads it. A gateway that stood still while another took its place acknowledges nothing.
 *
 * <p>Thread-safe, save {@link #answer}.
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

    /**
     * Asks it.
     *
     * @return done when the group has said so; fails with a {@link RefusedCallException} where the session may be another's by now
     */
    CompletableFuture<Void> confirm(Session session) {
        CompletableFuture<Void> confirmed = new CompletableFuture<>();
        questions.add(new Question(session, confirmed));
        return confirmed;
    }

    /**
     * Says on the log that this gateway continues with a session of another one, or of its own life before. What follows tells by that
     * how many have played it, so that no two of them give one number to two turns.
     *
     * @return done when it may be played
     */
    CompletableFuture<Void> takeUp(Session session, long nowMs) {
        return log.takenUp(session, nowMs).thenCompose(written -> confirm(session));
    }

    /**
     * Waits until a session may be played.
     *
     * @throws RefusedCallException if it may not, or not yet
     */
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

    /** Waits for what {@link #confirm}, {@link #takeUp} or a write gave. */
    static void await(CompletableFuture<Void> done, long limitMs) {
        try {
            done.get(limitMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw RefusedCallException.notNow(
                    "log", "the cluster has not taken it within " + limitMs + " ms; ask again");
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

    /** Asks the group once for all that came to be on the log before. For the role's thread. */
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
                                        + each.session().id().text() + " by now; ask again"));
            }
        }
    }
}
