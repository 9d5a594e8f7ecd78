package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.topology.batch.AssemblyTask.BatchCutter.SeenOrdinals;
import org.junit.jupiter.api.Test;

class SeenOrdinalsTest {
    @Test
    void shouldKnowARequestOfWhichNothingHasCome() {
        SeenOrdinals ordinals = new SeenOrdinals(true);
        ordinals.see(1);
        ordinals.see(2);
        assertThat(ordinals.hasHoleBefore(2)).as("0 is missing").isTrue();
        assertThat(ordinals.hasHoleBefore(0)).isFalse();
        ordinals.see(0);
        assertThat(ordinals.hasHoleBefore(3)).isFalse();
        assertThat(ordinals.hasHoleBefore(4)).as("3 is missing").isTrue();
    }

    @Test
    void shouldWaitNoMoreForWhatWasGivenUp() {
        SeenOrdinals ordinals = new SeenOrdinals(true);
        ordinals.see(2);
        ordinals.giveUpBefore(2);
        assertThat(ordinals.hasHoleBefore(3)).isFalse();
        ordinals.see(0);
        assertThat(ordinals.hasHoleBefore(3)).isFalse();
        ordinals.see(5);
        assertThat(ordinals.hasHoleBefore(5)).as("3 and 4").isTrue();
    }

    @Test
    void shouldLookForNothingOlderAfterARestart() {
        SeenOrdinals ordinals = new SeenOrdinals(false);
        ordinals.see(40);
        assertThat(ordinals.hasHoleBefore(41)).isFalse();
        ordinals.see(42);
        assertThat(ordinals.hasHoleBefore(42)).as("41 is missing").isTrue();
    }
}
