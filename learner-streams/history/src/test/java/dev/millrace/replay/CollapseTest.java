package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CollapseTest {
    @Test
    void shouldNameTheFirstEvaluationOfAFallThatLasts() {
        assertThat(Collapse.at(new double[] {0.2, 0.8, 0.5, 0.39, 0.1, 0.2, 0.3}))
                .hasValue(3);
    }

    @Test
    void shouldNotCallADipACollapse() {
        assertThat(Collapse.at(new double[] {0.8, 0.1, 0.1, 0.1, 0.1, 0.41}))
                .as("it came back")
                .isEmpty();
        assertThat(Collapse.at(new double[] {0.8, 0.8, 0.1, 0.1, 0.1}))
                .as("three are too few to say")
                .isEmpty();
        assertThat(Collapse.at(new double[] {0.1, 0.1, 0.1, 0.1, 0.1}))
                .as("it never was better")
                .isEmpty();
        assertThat(Collapse.at(new double[0])).isEmpty();
    }
}
