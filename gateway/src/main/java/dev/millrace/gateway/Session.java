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
 * One sample being played by an agent: its turns, and whether it is over.
 *
 * <p>Turns are a tree: each continues from another, or begins with a prompt of its own. Calls may be under way side by side; a number is
 * taken when a turn is to be written and never given twice, since nobody knows whether a write that failed is on the log.
 * Thread-safe.
 */
final class Session {
    /** Numbers that one gateway may give to turns of a session: more than there may be turns, since calls may fail. */
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

    /** A call comes in. */
    synchronized void enter(long nowMs, int mostTurns) {
        requireOpen();
        if (turns.size() + underWay >= mostTurns) {
            throw RefusedCallException.conflict("the session has " + turns.size() + " turns, and more than " + mostTurns
                    + " are not allowed (gateway.turns); complete it");
        }
        underWay++;
        lastAtMs = nowMs;
    }

    /** It is answered, or has failed. */
    synchronized void leave(long nowMs) {
        underWay--;
        lastAtMs = nowMs;
    }

    /** @throws RefusedCallException if it is over */
    synchronized void requireOpen() {
        if (ending != null) {
            throw RefusedCallException.conflict("the session " + id.text() + " is over; open another one");
        }
    }

    synchronized boolean isOpen() {
        return ending == null;
    }

    /** What it has been through, by number. */
    synchronized List<PlayedTurn> turns() {
        return List.copyOf(turns);
    }

    synchronized int takeNumber() {
        requireOpen();
        if (nextTurn >= numbersEnd) {
            throw RefusedCallException.conflict("the session has used up the numbers of its turns, " + NUMBERS
                    + " at one gateway, with calls that failed; complete it");
        }
        return nextTurn++;
    }

    /** Why a turn does not go on from the newest one; null where it does. */
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

    /** A turn is on the log. */
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
     * It was read back: whoever plays it has its time again, and numbers that no gateway before gave. One of those may still write a
     * turn that it never acknowledges; that must not have the number of one that is.
     *
     * @param lives gateways that have played it before, as the log says
     */
    synchronized void restored(long nowMs, long lives) {
        lastAtMs = nowMs;
        nextTurn = (int) Math.max(nextTurn, Math.min(lives * NUMBERS, Integer.MAX_VALUE));
        numbersEnd = (int) Math.min((lives + 1) * NUMBERS, Integer.MAX_VALUE);
    }

    /** From when on this gateway may play it. */
    synchronized void isTakenUp(CompletableFuture<Void> when) {
        takenUp = when;
    }

    /** Done when this gateway may play it. */
    synchronized CompletableFuture<Void> takenUp() {
        return takenUp;
    }

    /** The turn of a number. */
    synchronized Optional<PlayedTurn> turn(int number) {
        return turns.stream().filter(turn -> turn.record().getTurn() == number).findAny();
    }

    /** How its turns are sampled, as the first of them was; empty before. */
    synchronized Optional<SamplingParameters> sampling() {
        return turns.isEmpty()
                ? Optional.empty()
                : Optional.of(turns.get(0).record().getSampling());
    }

    /** Oldest version of any of its tokens; empty before the first. */
    synchronized OptionalLong oldestVersion() {
        return turns.stream()
                .flatMap(turn -> turn.record().getVersionSpans().stream())
                .mapToLong(span -> span.getVersion())
                .min();
    }

    /** The end that was begun; null while it is open. */
    synchronized @Nullable SessionEnding ending() {
        return ending;
    }

    /** Begins its end; false if it has begun. */
    synchronized boolean end(SessionEnding wanted) {
        if (ending != null) {
            return false;
        }
        ending = wanted;
        return true;
    }

    /** Whether nobody has asked anything of it for so long, or it has been open for so long. */
    synchronized boolean isOverdue(long nowMs, GatewayConfig config) {
        return ending == null
                && (underWay == 0 && nowMs - lastAtMs >= config.idleMs() || nowMs - openedAtMs >= config.limitMs());
    }

    /** How long nobody has asked anything of it. */
    synchronized long idleMs(long nowMs) {
        return nowMs - lastAtMs;
    }

    /**
     * A session's name: where its prompt lies, which of the prompt's samples it plays, and what nobody can guess.
     *
     * @param partition of the topic {@code prompts}
     * @param offset of the prompt in it
     */
    record SessionId(String text, int partition, long offset) {
        private static final Pattern FORM = Pattern.compile("s(\\d{1,9})-(\\d{1,18})-(\\d{1,9})-[0-9a-z]{1,26}");
        private static final SecureRandom RANDOM = new SecureRandom();

        static SessionId of(int partition, long offset, int sample) {
            String secret = Long.toUnsignedString(RANDOM.nextLong(), 36) + Long.toUnsignedString(RANDOM.nextLong(), 36);
            return new SessionId("s" + partition + "-" + offset + "-" + sample + "-" + secret, partition, offset);
        }

        /** Empty if no gateway gives such a name. */
        static Optional<SessionId> parse(String text) {
            Matcher form = FORM.matcher(text);
            return form.matches()
                    ? Optional.of(new SessionId(text, Integer.parseInt(form.group(1)), Long.parseLong(form.group(2))))
                    : Optional.empty();
        }
    }
}
