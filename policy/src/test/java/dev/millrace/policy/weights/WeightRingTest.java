package dev.millrace.policy.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.DecoderShape;
import org.junit.jupiter.api.Test;

class WeightRingTest {
    private static final DecoderShape SHAPE = new DecoderShape(4, 2, 1, 1, 1, 2, 2, 8, 100, 1e-6, false, false);

    @Test
    void shouldKeepCopiesOfTheNewestVersions() {
        WeightRing ring = new WeightRing(2, 0);
        Weights trained = Weights.zeros(SHAPE);
        for (int version = 0; version < 5; version++) {
            trained.tensor("model.norm.weight").put(0, version);
            ring.add(trained);
        }
        trained.tensor("model.norm.weight").put(0, -1f);

        assertThat(ring.newest()).isEqualTo(4);
        for (int version = 2; version < 5; version++) {
            assertThat(ring.at(version).tensor("model.norm.weight").get(0)).isEqualTo(version);
        }
        assertThatThrownBy(() -> ring.at(1)).hasMessage("version 1 is not kept: the ring holds 2 to 4");
        assertThatThrownBy(() -> ring.at(5)).hasMessage("version 5 is not kept: the ring holds 2 to 4");
    }
}
