package dev.millrace.chaos.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.chaos.observe.Holdings;
import dev.millrace.chaos.observe.ProcessFigures;
import java.util.List;
import org.junit.jupiter.api.Test;

class GrowthTest {
    private final Holdings holdings = new Holdings();

    private void sixTimes(long megabytes, long threads, long handles, double live) {
        for (int i = 0; i < 6; i++) {
            holdings.add("scorer", new ProcessFigures(megabytes, threads, handles));
            holdings.add("scorer", live);
        }
    }

    @Test
    void shouldHoldWhereEverythingStaysWithinItsBound() {
        sixTimes(200, 20, 100, 20);
        sixTimes(300, 40, 140, 25.9);

        Check check = EndChecks.holdings(holdings.changes());

        assertThat(check.isHeld()).as(check.seen()).isTrue();
        assertThat(check.seen()).isEqualTo("1 processes looked at, the live heap of 1");
    }

    @Test
    void shouldNameEachFigureThatGrewBeyondItsBound() {
        sixTimes(200, 20, 100, 20);
        sixTimes(315, 59, 163, 27);

        assertThat(EndChecks.holdings(holdings.changes()))
                .isEqualTo(new Check(
                        "live heap, resident memory, threads and file handles are back where they were",
                        false,
                        "scorer threads from 20 to 59, 58 is the bound; scorer handles from 100 to 163, 162 is the bound;"
                                + " scorer MB resident from 200 to 315, 314 is the bound;"
                                + " scorer MB of live heap from 20 to 27, 26 is the bound"));
    }

    private void broker(int node, double first, double last) {
        for (int i = 0; i < 12; i++) {
            holdings.add("broker-" + node, new ProcessFigures(400, 90, 300));
            holdings.add("broker-" + node, i < 6 ? first : last);
        }
    }

    @Test
    void shouldCompareTheLiveHeapsOfSeveralBrokersTogether() {
        broker(1, 71.4, 70.7);
        broker(2, 56.1, 51.1);
        broker(3, 47.8, 59.6);

        assertThat(EndChecks.holdings(holdings.changes()).isHeld())
                .as("what one leads another led before")
                .isTrue();

        broker(4, 20, 45);

        assertThat(EndChecks.holdings(holdings.changes()).seen())
                .isEqualTo("brokers' together MB of live heap from 195 to 226, 219 is the bound");
    }

    @Test
    void shouldSayOfHowManyTheLiveHeapWasNotLookedAt() {
        for (int i = 0; i < 6; i++) {
            holdings.add("scorer", new ProcessFigures(200, 20, 100));
        }

        List<Holdings.Change> changes = holdings.changes();

        assertThat(changes.get(0).live()).isNull();
        assertThat(EndChecks.holdings(changes).seen()).isEqualTo("1 processes looked at, the live heap of 0");
    }
}
