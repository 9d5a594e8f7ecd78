package dev.millrace.chaos.check;

import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.chaos.loss.Lost;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** What the ledger must say when the faults are over: that it adds up, and that nothing is left over. */
final class LedgerChecks {
    private static final Pattern PLACE = Pattern.compile("rollouts-(\\d+)@(\\d+)");
    /** Topics that say what became of a rollout. */
    private static final Set<String> DECISIONS =
            Set.of("outcomes", "training-log", "batches", "trajectories", "dead-letters", "scores");

    private final RunTopics topics;
    private final List<Lost> losses;

    /** @param losses what the log has lost */
    LedgerChecks(RunTopics topics, List<Lost> losses) {
        this.topics = topics;
        this.losses = losses;
    }

    /**
     * Both.
     *
     * @param settledBeforeMs rollouts older than this must have come to their end
     */
    List<Check> of(Balance balance, long settledBeforeMs) {
        List<Check> checks = new ArrayList<>();
        Tally all = balance.all();
        long unexplained = balance.contradictions().stream()
                .filter(contradiction -> !isOfLostPlace(contradiction))
                .count();
        long lostPlaces = losses.stream()
                .filter(cut -> cut.topic().equals(topics.rollouts()))
                .mapToLong(cut -> cut.to() - cut.from())
                .sum();
        boolean isExplained = unexplained == 0 && balance.contradictionCount() <= lostPlaces;
        checks.add(new Check(
                losses.isEmpty()
                        ? "the ledger adds up to the record"
                        : "the ledger adds up to the record, but for places whose rollouts the log has lost",
                balance.addsUp() || isExplained,
                balance.addsUp()
                        ? all.generated() + " generated = " + all.trained() + " trained + " + sum(all.masked())
                                + " masked + " + sum(all.dropped()) + " dropped + " + sum(all.deadLettered())
                                + " dead-lettered + "
                                + (all.unfinished().waitingForScore()
                                        + all.unfinished().waitingForBatch()
                                        + all.unfinished().waitingForStep())
                                + " in flight"
                                + (all.unfinished().superseded() == 0
                                        ? ""
                                        : " + " + all.unfinished().superseded() + " superseded")
                        : balance.contradictionCount() + " contradictions, the first: "
                                + balance.contradictions().stream().findFirst().orElse("the sums differ")));
        List<String> old = balance.oldestWaiting().stream()
                .filter(waiting -> waiting.sinceMs() < settledBeforeMs)
                .map(waiting -> waiting.rolloutId() + " waits for " + waiting.stage() + " since "
                        + (settledBeforeMs - waiting.sinceMs()) / 1_000 + " s before the calm")
                .toList();
        List<String> left = Stream.concat(old.stream(), balance.gaps().stream()).toList();
        boolean mayBe = losses.stream()
                .anyMatch(cut ->
                        DECISIONS.stream().anyMatch(topic -> cut.topic().equals(topics.prefix() + topic)));
        checks.add(new Check(
                losses.isEmpty()
                        ? "no rollout is left over from before the last calm"
                        : "no rollout is left over from before the last calm, but where the log has lost what became of it",
                left.isEmpty() || mayBe,
                left.isEmpty() ? "none" : String.join("; ", left)));
        return checks;
    }

    /** Whether it is about a rollout in whose place on the log there was another one. */
    private boolean isOfLostPlace(String contradiction) {
        Matcher place = PLACE.matcher(contradiction);
        return place.find()
                && losses.stream()
                        .anyMatch(cut -> cut.covers(
                                topics.rollouts(), Integer.parseInt(place.group(1)), Long.parseLong(place.group(2))));
    }

    private static long sum(Map<String, Long> reasons) {
        return reasons.values().stream().mapToLong(Long::longValue).sum();
    }
}
