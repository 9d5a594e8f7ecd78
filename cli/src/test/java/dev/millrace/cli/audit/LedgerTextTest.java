package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Balance.OldestPending;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.runtime.config.ConfigException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LedgerTextTest {
    private static final VersionRange ALL = new VersionRange(Long.MIN_VALUE, Long.MAX_VALUE);

    private static Balance balance(int versions, List<String> contradictions, List<String> gaps) {
        TreeMap<RolloutOrigin, Tally> tallies = new TreeMap<>();
        IntStream.range(0, versions)
                .forEach(version -> tallies.put(
                        new RolloutOrigin(0, version),
                        new Tally(
                                1256,
                                1240,
                                Map.of("m2po", 3L),
                                Map.of("stale", 2L, "duplicate", 1L),
                                Map.of("reward", 4L),
                                new Tally.Unfinished(1, 2, 3, 0, 0))));
        return new Balance(
                tallies,
                2,
                new Balance.Unmatched(
                        Map.of("batches", 3L, "outcomes", 1L), Map.of("outcomes", 2L), Map.of("millrace.scores", 1L)),
                List.of(new OldestPending("a score", "0-17/3", 1000)),
                contradictions,
                contradictions.size(),
                gaps);
    }

    @Test
    void shouldFit80ColumnsAndShowEachVersion() {
        List<String> lines = new LedgerText(balance(3, List.of(), List.of()), ALL, 5_000).lines();
        assertThat(lines).allMatch(line -> line.length() <= 80);
        assertThat(lines)
                .contains(
                        "version  generated  trained  masked  dropped  refused  in flight",
                        "2            1,256    1,240       3        3        4          6",
                        "all          3,768    3,720       9        9       12         18",
                        "3,768 generated = 3,720 trained + 9 masked + 9 dropped + 12 dead-lettered + 18",
                        "  in flight",
                        "  masked      by m2po 9",
                        "  dropped     duplicate 3, stale 6",
                        "              0-17/3 has waited for a score for 4.0 s",
                        "  copies      duplicate records, each counted once: batches 3, outcomes 1",
                        "  strays      records that name no offset of the topic, not counted: outcomes 2",
                        "It adds up.");
    }

    @Test
    void shouldPutNeighboursTogetherWhereThereAreMany() {
        List<String> lines = new LedgerText(balance(95, List.of(), List.of()), ALL, 5_000).lines();
        assertThat(lines)
                .filteredOn(line -> line.matches(" *\\d+(-\\d+)? .*\\d"))
                .hasSize(19)
                .first()
                .asString()
                .startsWith("0-4          6,280");
    }

    @Test
    void shouldSumUpOnlyTheVersionsThatWereAskedFor() {
        List<String> lines = new LedgerText(balance(95, List.of(), List.of()), new VersionRange(10, 11), 5_000).lines();
        assertThat(lines).anyMatch(line -> line.startsWith("2,512 generated = 2,480 trained"));
        assertThat(lines).noneMatch(line -> line.contains("has waited"));
    }

    @Test
    void shouldNameWhatContradictsAndWhatIsDeleted() {
        List<String> lines = new LedgerText(
                        balance(1, List.of("batch 4 was trained on twice"), List.of("batches-0 begins at offset 7")),
                        ALL,
                        5_000)
                .lines();
        assertThat(lines)
                .contains(
                        "It does NOT add up: 1 contradiction:",
                        "  batch 4 was trained on twice",
                        "  deleted     batches-0 begins at offset 7");
        assertThat(new LedgerText(balance(1, List.of(), List.of("batches-0 begins at offset 7")), ALL, 5_000).lines())
                .contains("It adds up, as far as the log goes back.");
    }

    @Test
    void shouldRefuseARangeThatHoldsNothing() {
        assertThatThrownBy(() -> new VersionRange(3, 2))
                .isInstanceOf(ConfigException.class)
                .hasMessage("--from-version 3 is newer than --to-version 2; the range is empty");
    }
}
