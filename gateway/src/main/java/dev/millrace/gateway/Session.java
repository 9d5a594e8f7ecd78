package dev.millrace.gateway;

import dev.millrace.gateway.TurnPlayer.TurnPrompt;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A sample played by an agent. Turns form a tree. Concurrent calls take distinct numbers, never reused, since a failed
 * write may be on the log. Thread-safe.
 */
final class Session {
    /** Turn numbers per gateway; more than turns, since calls may fail. */
    static final int NUMBERS = 200_000;

    private final SessionId id;
    private final ReleasedSample sample;
    private final @Nullable String agent;
    private final long openedAtMs;
    private final List<PlayedTurn> turns = new ArrayList<>();
    private int nextTurn;
    private int numbersEnd = NUMBERS;
    private int underWay;
    private long lastAtMs;
    private @Nullable SessionEnding ending;
    private CompletableFuture<Void> takenUp = CompletableFuture.completedFuture(null);

    Session(SessionId id, ReleasedSample sample, @Nullable String agent, long openedAtMs) {
        this.id = id;
        this.sample = sample;
        this.agent = agent;
        this.openedAtMs = openedAtMs;
        this.lastAtMs = openedAtMs;
    }

    SessionId id() {
        return id;
    }

    ReleasedSample sample() {
        return sample;
    }

    @Nullable
    String agent() {
        return agent;
    }

    long openedAtMs() {
        return openedAtMs;
    }

    synchronized void enter(long nowMs, int mostTurns) {
        requireOpen();
        if (turns.size() + underWay >= mostTurns) {
            throw RefusedCallException.conflict("the session has " + turns.size() + " turns, and more than " + mostTurns
                    + " are not allowed (gateway.turns); complete it");
        }
        underWay++;
        lastAtMs = nowMs;
    }

    synchronized void leave(long nowMs) {
        underWay--;
        lastAtMs = nowMs;
    }

    /** @throws RefusedCallException if it is over */
    synchronized void requireOpen() {
        if (ending != null) {
            throw RefusedCallException.conflict("the session " + id.text() + " has ended; open another one");
        }
    }

    synchronized boolean isOpen() {
        return ending == null;
    }

    synchronized List<PlayedTurn> turns() {
        return List.copyOf(turns);
    }

    synchronized int takeNumber() {
        requireOpen();
        if (nextTurn >= numbersEnd) {
            throw RefusedCallException.conflict("the session has used up its turn numbers, " + NUMBERS
                    + " at one gateway, with calls that failed; complete it");
        }
        return nextTurn++;
    }

    synchronized @Nullable BranchReason forkOf(TurnPrompt prompt) {
        if (turns.isEmpty() || number(prompt.parent()) == number(turns.get(turns.size() - 1))) {
            return null;
        }
        boolean isAgain = turns.stream()
                .anyMatch(turn -> number(turn.parent()) == number(prompt.parent())
                        && Arrays.equals(PackedInts.toArray(turn.record().getContextTokens()), prompt.context()));
        return isAgain ? BranchReason.RETRY : BranchReason.EDIT;
    }

    private static int number(@Nullable PlayedTurn turn) {
        return turn == null ? -1 : turn.record().getTurn();
    }

    synchronized void add(PlayedTurn turn) {
        boolean isThere = turns.stream()
                .anyMatch(each -> each.record().getTurn() == turn.record().getTurn());
        if (!isThere) {
            int at = turns.size();
            while (at > 0 && number(turns.get(at - 1)) > number(turn)) {
                at--;
            }
            turns.add(at, turn);
            nextTurn = Math.max(nextTurn, turn.record().getTurn() + 1);
        }
    }

    /**
     * Restarts the time limits, with turn numbers that no earlier gateway gave: one of them may still write an
     * unacknowledged turn.
     *
     * @param lives earlier gateways, by the log
     */
    synchronized void restored(long nowMs, long lives) {
        lastAtMs = nowMs;
        nextTurn = (int) Math.max(nextTurn, Math.min(lives * NUMBERS, Integer.MAX_VALUE));
        numbersEnd = (int) Math.min((lives + 1) * NUMBERS, Integer.MAX_VALUE);
    }

    /** Completes when this gateway may play it. */
    synchronized void isTakenUp(CompletableFuture<Void> when) {
        takenUp = when;
    }

    /** Completes when this gateway may play it. */
    synchronized CompletableFuture<Void> takenUp() {
        return takenUp;
    }

    synchronized Optional<PlayedTurn> turn(int number) {
        return turns.stream().filter(turn -> turn.record().getTurn() == number).findAny();
    }

    synchronized Optional<SamplingParameters> sampling() {
        return turns.isEmpty()
                ? Optional.empty()
                : Optional.of(turns.get(0).record().getSampling());
    }

    /** Oldest sampling version; empty before the first turn. */
    synchronized OptionalLong oldestVersion() {
        return turns.stream()
                .flatMap(turn -> turn.record().getVersionSpans().stream())
                .mapToLong(span -> span.getVersion())
                .min();
    }

    /** Null while it is open. */
    synchronized @Nullable SessionEnding ending() {
        return ending;
    }

    /** False if it is ending already. */
    synchronized boolean end(SessionEnding wanted) {
        if (ending != null) {
            return false;
        }
        ending = wanted;
        return true;
    }

    /** True past the idle or age limit. */
    synchronized boolean isOverdue(long nowMs, GatewayConfig config) {
        return ending == null
                && (underWay == 0 && nowMs - lastAtMs >= config.idleMs() || nowMs - openedAtMs >= config.limitMs());
    }

    synchronized long idleMs(long nowMs) {
        return nowMs - lastAtMs;
    }

    /** Session name: prompt position, sample, and an unguessable part. */
    record SessionId(String text, int partition, long offset) {
        private static final Pattern FORM = Pattern.compile("s(\\d{1,9})-(\\d{1,18})-(\\d{1,9})-[0-9a-z]{1,26}");
        private static final SecureRandom RANDOM = new SecureRandom();

        static SessionId of(int partition, long offset, int sample) {
            String secret = Long.toUnsignedString(RANDOM.nextLong(), 36) + Long.toUnsignedString(RANDOM.nextLong(), 36);
            return new SessionId("s" + partition + "-" + offset + "-" + sample + "-" + secret, partition, offset);
        }

        static Optional<SessionId> parse(String text) {
            Matcher form = FORM.matcher(text);
            return form.matches()
                    ? Optional.of(new SessionId(text, Integer.parseInt(form.group(1)), Long.parseLong(form.group(2))))
                    : Optional.empty();
        }
    }
}
