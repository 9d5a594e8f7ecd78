package dev.millrace.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class LedgerTest {
    private final Ledger ledger = new Ledger();

    @Test
    void shouldFindEachRolloutInExactlyOnePlace() {
        for (int i = 0; i < 7; i++) {
            ledger.rollout(0, i, "g/" + i);
        }
        ledger.rollout(0, 7, ""); // garbage
        ledger.rollout(1, 0, "g/0"); // a repetition
        ledger.batched(0, "g/0", true);
        ledger.batched(0, "g/1", false);
        ledger.stepped(0);
        ledger.batched(1, "g/2", true); // assembled, not yet trained on
        ledger.dropped(0, 3, "zero-variance");
        ledger.dropped(0, 4, "zero-variance");
        ledger.dropped(1, 0, "duplicate");
        ledger.deadLettered(0, 7);

        Balance balance = ledger.balance();

        assertThat(balance).isEqualTo(new Balance(9, 1, 1, Map.of("zero-variance", 2L, "duplicate", 1L), 1, 3, java.util.List.of(), 0));
        assertThat(balance.addsUp()).isTrue();
    }

    @Test
    void shouldNotMindTheOrderInWhichTopicsAreRead() {
        ledger.stepped(0);
        ledger.deadLettered(0, 1);
        ledger.batched(0, "g/0", true);
        ledger.rollout(0, 0, "g/0");
        ledger.rollout(0, 1, "");
        assertThat(ledger.balance().addsUp()).isTrue();
    }

    @Test
    void shouldReportARolloutInTwoBatches() {
        ledger.rollout(0, 0, "g/0");
        ledger.batched(0, "g/0", true);
        ledger.batched(1, "g/0", true);
        ledger.stepped(0);
        ledger.stepped(1);
        assertThat(ledger.balance().addsUp()).isFalse();
        assertThat(ledger.balance().contradictions()).containsExactly("rollout g/0 is in two batches");
    }

    @Test
    void shouldReportABatchThatWasTrainedOnTwice() {
        ledger.stepped(4);
        ledger.stepped(4);
        assertThat(ledger.balance().contradictions()).containsExactly("batch 4 was trained on twice");
    }

    @Test
    void shouldReportABatchedRolloutThatIsNotOnTheLog() {
        ledger.batched(0, "g/0", true);
        ledger.stepped(0);
        assertThat(ledger.balance().contradictionCount()).isEqualTo(1);
    }

    @Test
    void shouldReportARolloutThatWasBothDroppedAndTrained() {
        ledger.rollout(0, 0, "g/0");
        ledger.dropped(0, 0, "stale");
        ledger.batched(0, "g/0", true);
        ledger.stepped(0);
        assertThat(ledger.balance().addsUp()).isFalse();
    }
}
