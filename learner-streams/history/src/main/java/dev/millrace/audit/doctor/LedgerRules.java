package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Tally;
import java.util.List;
import java.util.Map;

/** What became of the rollouts: whether their account adds up, and how many of them nobody trains on. */
final class LedgerRules {
    private static final double MANY_DROPPED = 0.1;
    private static final double MANY_REFUSED = 0.01;
    private static final double MANY_MASKED = 0.5;

    private LedgerRules() {}

    static void ledger(Balance balance, List<Finding> findings) {
        if (!balance.addsUp()) {
            findings.add(
                    new Finding(
                            Weight.BROKEN,
                            "ledger",
                            Finding.say(
                                    "the ledger does not add up: %s, the first: %s",
                                    Finding.count(balance.contradictionCount(), "contradiction"),
                                    balance.contradictions().isEmpty()
                                            ? "the sum"
                                            : balance.contradictions().get(0)),
                            "look at 'millrace ledger' and trace what it names; two topologies or learners may write to one run"));
        }
        balance.gaps()
                .forEach(gap -> findings.add(new Finding(
                        Weight.NOTE,
                        "retention",
                        gap,
                        "raise topics.record_retention_ms, or export what is to be kept")));
        if (!balance.copies().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "copies",
                    "records are on the log once more, and count once: " + reasons(balance.copies()),
                    "somebody else than the run's roles writes to these topics; nothing of the run is wrong by it"));
        }
        if (!balance.strays().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "strays",
                    "records name no place of the rollouts topic, and count for nothing: " + reasons(balance.strays()),
                    "somebody else than the run's roles writes to these topics, or the topic was made again with fewer"
                            + " partitions, which millrace repair tells"));
        }
    }

    static void lost(Examination examination, List<Finding> findings) {
        Balance balance = examination.account().balance();
        Tally all = examination.tally();
        if (share(all.deadLetteredInAll(), all.generated()) > MANY_REFUSED) {
            findings.add(new Finding(
                    Weight.SICK,
                    "refused",
                    Finding.say(
                            "%,d of %,d rollouts were refused: %s",
                            all.deadLetteredInAll(), all.generated(), reasons(all.deadLettered())),
                    "millrace dead-letters list; replay puts them back once the cause is mended"));
        } else if (all.deadLetteredInAll() > 0 || !balance.otherDeadLetters().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "refused",
                    Finding.say(
                            "%s (%s) and %s were refused",
                            Finding.count(all.deadLetteredInAll(), "rollout"),
                            reasons(all.deadLettered()),
                            Finding.count(
                                    balance.otherDeadLetters().values().stream()
                                            .mapToLong(Long::longValue)
                                            .sum(),
                                    "other record")),
                    "millrace dead-letters list"));
        }
        if (share(all.droppedInAll(), all.generated()) > MANY_DROPPED) {
            findings.add(new Finding(
                    Weight.WEAK,
                    "dropped",
                    Finding.say(
                            "%,d of %,d rollouts left before a batch: %s",
                            all.droppedInAll(), all.generated(), reasons(all.dropped())),
                    "what was sampled for them is lost; the reason says which deadline or limit"));
        }
        if (share(all.maskedInAll(), all.trained() + all.maskedInAll()) > MANY_MASKED) {
            findings.add(new Finding(
                    Weight.WEAK,
                    "masked",
                    Finding.say(
                            "%,d of %,d batched rollouts have no token left to train on: %s",
                            all.maskedInAll(), all.trained() + all.maskedInAll(), reasons(all.masked())),
                    "loosen the stage that masks most, or lower admission.eta"));
        }
    }

    private static double share(long part, long whole) {
        return whole == 0 ? 0 : (double) part / whole;
    }

    private static String reasons(Map<String, Long> counts) {
        return counts.isEmpty()
                ? "none"
                : counts.entrySet().stream()
                        .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                        .map(e -> Finding.say("%s %,d", e.getKey(), e.getValue()))
                        .reduce((a, b) -> a + ", " + b)
                        .orElseThrow();
    }
}
