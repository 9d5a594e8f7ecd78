package dev.millrace.cli.audit;

import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Balance.OldestPending;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.report.Column;
import dev.millrace.report.Lines;
import dev.millrace.report.Table;
import dev.millrace.report.TableText;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The ledger as lines that fit the {@linkplain Lines#width() screen}: a table by version, neighbours merged, then the
 * sum and any contradictions.
 */
final class LedgerText {
    private static final int MOST_ROWS = 20;

    /** Merged neighbouring versions. */
    private record Row(String name, Tally tally) {}

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.text("version", Row::name),
            Column.count("generated", row -> row.tally().generated()),
            Column.count("trained", row -> row.tally().trained()),
            Column.count("masked", row -> row.tally().maskedInAll()),
            Column.count("dropped", row -> row.tally().droppedInAll()),
            Column.count("refused", row -> row.tally().deadLetteredInAll()),
            Column.count(
                    "in flight",
                    row -> row.tally().inFlight() + row.tally().unfinished().expired()));
    private static final Column<Row> SUPERSEDED =
            Column.count("superseded", row -> row.tally().unfinished().superseded());

    private final Balance balance;
    private final VersionRange versions;
    private final long nowMs;

    LedgerText(Balance balance, VersionRange versions, long nowMs) {
        this.balance = balance;
        this.versions = versions;
        this.nowMs = nowMs;
    }

    List<String> lines() {
        SortedMap<RolloutOrigin, Tally> chosen = versions.of(balance);
        Tally all = chosen.values().stream().reduce(Tally.NONE, Tally::plus);
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.addAll(TableText.lines(Table.of("", columns(all), rows(chosen))));
        lines.add("");
        lines.addAll(Lines.wrapped("", sum(all)));
        detail(lines, "masked", "by " + reasons(all.masked()), all.maskedInAll());
        detail(lines, "dropped", reasons(all.dropped()), all.droppedInAll());
        detail(lines, "refused", reasons(all.deadLettered()), all.deadLetteredInAll());
        detail(
                lines,
                "in flight",
                String.format(
                        Locale.ROOT,
                        "%,d wait for a score, %,d for their group or batch, %,d for a step on their batch",
                        all.unfinished().waitingForScore(),
                        all.unfinished().waitingForBatch(),
                        all.unfinished().waitingForStep()),
                all.inFlight());
        if (versions.isAll()) {
            for (OldestPending waiting : balance.oldestWaiting()) {
                detail(
                        lines,
                        "",
                        (waiting.rolloutId().isEmpty() ? "an unreadable record" : waiting.rolloutId())
                                + " has waited for " + waiting.stage() + " for "
                                + Lines.duration(nowMs - waiting.sinceMs()),
                        1);
            }
            detail(
                    lines,
                    "redriven",
                    String.format(
                            Locale.ROOT, "%,d refused rollouts, counted under their later state", balance.redriven()),
                    balance.redriven());
            detail(
                    lines,
                    "copies",
                    "duplicate records, each counted once: "
                            + reasons(balance.unmatched().copies()),
                    balance.unmatched().copies().size());
            detail(
                    lines,
                    "strays",
                    "records that name no offset of the topic, not counted: "
                            + reasons(balance.unmatched().strays()),
                    balance.unmatched().strays().size());
            detail(
                    lines,
                    "others",
                    "refused records that are not rollouts: "
                            + reasons(balance.unmatched().otherDeadLetters()),
                    balance.unmatched().otherDeadLetters().size());
        }
        detail(
                lines,
                "superseded",
                "in flight in an older epoch when the next one started",
                all.unfinished().superseded());
        detail(
                lines,
                "expired",
                "retention deleted their decisions, or there were none",
                all.unfinished().expired());
        balance.gaps().forEach(gap -> detail(lines, "deleted", gap, 1));
        lines.add("");
        verdict(lines);
        return lines;
    }

    private static List<Column<Row>> columns(Tally all) {
        return all.unfinished().superseded() == 0
                ? COLUMNS
                : Stream.concat(COLUMNS.stream(), Stream.of(SUPERSEDED)).toList();
    }

    private static String sum(Tally all) {
        return String.format(
                Locale.ROOT,
                "%,d generated = %,d trained + %,d masked + %,d dropped + %,d dead-lettered + %,d in flight%s%s",
                all.generated(),
                all.trained(),
                all.maskedInAll(),
                all.droppedInAll(),
                all.deadLetteredInAll(),
                all.inFlight(),
                all.unfinished().superseded() == 0
                        ? ""
                        : String.format(
                                Locale.ROOT,
                                " + %,d superseded",
                                all.unfinished().superseded()),
                all.unfinished().expired() == 0
                        ? ""
                        : String.format(
                                Locale.ROOT, " + %,d expired", all.unfinished().expired()));
    }

    private void verdict(List<String> lines) {
        if (balance.addsUp()) {
            lines.add(balance.gaps().isEmpty() ? "It adds up." : "It adds up, as far as the log goes back.");
            return;
        }
        lines.add(String.format(
                Locale.ROOT,
                "It does NOT add up: %,d contradiction%s%s",
                balance.contradictionCount(),
                balance.contradictionCount() == 1 ? "" : "s",
                balance.contradictionCount() > balance.contradictions().size()
                        ? ", the first " + balance.contradictions().size() + ":"
                        : ":"));
        balance.contradictions().forEach(sentence -> lines.addAll(Lines.wrapped("  ", sentence)));
        lines.add("'millrace trace ID --whole' shows every record of a rollout.");
    }

    private static void detail(List<String> lines, String label, String text, long count) {
        if (count > 0) {
            lines.addAll(Lines.labelled(label, text));
        }
    }

    private static List<Row> rows(SortedMap<RolloutOrigin, Tally> chosen) {
        List<Row> rows = new ArrayList<>();
        boolean epochs = chosen.keySet().stream().anyMatch(origin -> origin.epoch() > 0);
        List<Map.Entry<RolloutOrigin, Tally>> ours = chosen.entrySet().stream()
                .filter(e -> !e.getKey().equals(RolloutOrigin.NOT_OURS))
                .toList();
        int together = Math.max(1, (ours.size() + MOST_ROWS - 1) / MOST_ROWS);
        for (int i = 0; i < ours.size(); ) {
            RolloutOrigin first = ours.get(i).getKey();
            RolloutOrigin last = first;
            Tally sum = Tally.NONE;
            for (int n = 0;
                    n < together && i < ours.size() && ours.get(i).getKey().epoch() == first.epoch();
                    n++, i++) {
                last = ours.get(i).getKey();
                sum = sum.plus(ours.get(i).getValue());
            }
            String name =
                    first.version() == last.version() ? "" + first.version() : first.version() + "-" + last.version();
            rows.add(new Row((epochs ? "epoch " + first.epoch() + ": " : "") + name, sum));
        }
        if (epochs) {
            SortedMap<Integer, Tally> byEpoch = new TreeMap<>();
            ours.forEach(e -> byEpoch.merge(e.getKey().epoch(), e.getValue(), Tally::plus));
            byEpoch.forEach((epoch, tally) -> rows.add(new Row("epoch " + epoch + ": all", tally)));
        }
        if (chosen.containsKey(RolloutOrigin.NOT_OURS)) {
            rows.add(new Row("not a rollout", chosen.get(RolloutOrigin.NOT_OURS)));
        }
        rows.add(new Row("all", chosen.values().stream().reduce(Tally.NONE, Tally::plus)));
        return rows;
    }

    private static String reasons(Map<String, Long> counts) {
        return counts.entrySet().stream()
                .map(e -> String.format(Locale.ROOT, "%s %,d", e.getKey(), e.getValue()))
                .collect(Collectors.joining(", "));
    }
}
