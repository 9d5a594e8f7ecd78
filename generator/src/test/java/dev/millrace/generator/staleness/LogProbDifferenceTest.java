package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.staleness.GeneratorWatch.LogProbDifference;
import dev.millrace.schemas.ComparedLogProbs;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A bound of 0.3 nats, 0.1 where nothing is explained, over 56 tokens, so that a lot has 8. */
class LogProbDifferenceTest {
    private static final QuarantineConfig CONFIG = new QuarantineConfig(64, 256, 0.5, 0.3, 56);

    /** The scorer's log-probs, and the generator's. */
    private static ComparedLogProbs compared(double[] scored, double... sent) {
        double absolute = 0;
        double squared = 0;
        double sum = 0;
        double sumSquared = 0;
        for (int i = 0; i < scored.length; i++) {
            double difference = sent[i] - scored[i];
            absolute += Math.abs(difference);
            squared += difference * difference;
            sum += scored[i];
            sumSquared += scored[i] * scored[i];
        }
        return new ComparedLogProbs("g", (long) scored.length, absolute, squared, sum, sumSquared);
    }

    /** What the same sums in every lot amount to. */
    private static LogProbDifference of(ComparedLogProbs sums) {
        LogProbDifference difference = new LogProbDifference(CONFIG);
        for (long tokens = 0; !difference.isEnough(); tokens += sums.getTokens()) {
            assertThat(tokens).isLessThan(2 * CONFIG.differenceTokens());
            difference.add(sums);
        }
        return difference;
    }

    private static double[] scored(double... logProbs) {
        return logProbs;
    }

    @Test
    void shouldDecideOnceThereAreTokensEnough() {
        LogProbDifference difference = new LogProbDifference(CONFIG);
        for (int token = 0; token < 55; token++) {
            difference.add(compared(scored(-1), -4));
        }
        assertThat(difference.isEnough()).isFalse();
        difference.add(compared(scored(-1), -4));
        assertThat(difference.isEnough()).isTrue();
        assertThat(difference.tooMuch())
                .contains(
                        "its log-probs differ by 3.000 nats on average from those of the versions it names, in 7 of 7 lots of"
                                + " 56 tokens in all, and may by 0.3");
    }

    @Test
    void shouldGiveOneRecordOneVoiceHoweverManyTokensItSpeaksOf() {
        ComparedLogProbs honest = compared(scored(-0.1, -1.2, -3.0, -0.4), -0.15, -1.05, -3.1, -0.3);
        ComparedLogProbs slander = new ComparedLogProbs("g", 10_000_000L, 2e9, 4e11, -1e7, 1e7);
        ComparedLogProbs lie = compared(scored(-1, -1), -4, -4);
        ComparedLogProbs praise = new ComparedLogProbs("g", 10_000_000L, 0.0, 0.0, -1e7, 1e7);
        assertThat(mostlyOf(honest, slander).tooMuch()).isEmpty();
        assertThat(mostlyOf(lie, praise).tooMuch())
                .hasValueSatisfying(sentence -> assertThat(sentence).contains("in 4 of 7 lots"));
    }

    /** Three lots of the second, and all others of the first. */
    private static LogProbDifference mostlyOf(ComparedLogProbs most, ComparedLogProbs few) {
        LogProbDifference difference = new LogProbDifference(CONFIG);
        for (int i = 0; i < 3; i++) {
            difference.add(few);
        }
        while (!difference.isEnough()) {
            difference.add(most);
        }
        return difference;
    }

    @Test
    void shouldLetAnEngineOfAnotherPrecisionPass() {
        assertThat(of(compared(scored(-0.1, -1.2, -3.0, -0.4), -0.15, -1.05, -3.1, -0.3)) // 0.1 in the mean
                        .tooMuch())
                .isEmpty();
        assertThat(of(compared(scored(-2.77, -2.76, -2.78, -2.77), -2.76, -2.77, -2.77, -2.78))
                        .tooMuch())
                .as("of a policy that is sure of nothing: the differences are all there is, and tiny")
                .isEmpty();
        assertThat(of(compared(scored(-0.0, -4, -0.0, -4), -0.25, -4.25, -0.25, -4.25))
                        .tooMuch())
                .as("much, and yet the tokens differ: 0.25 in the mean")
                .isEmpty();
    }

    @Test
    void shouldFindConstantsAndShuffledOnes() {
        double[] sure = scored(-0.01, -0.01, -0.01, -0.01, -0.01, -0.01, -0.01, -0.93);
        assertThat(of(compared(sure, 0, 0, 0, 0, 0, 0, 0, 0)).tooMuch()) // 1 over 8; 0.8656 against 0.7406
                .contains(
                        "its log-probs differ by 0.125 nats on average from those of the versions it names, in 7"
                                + " of 7 lots of 56 tokens in all, and may by 0.100 where they say as little of the tokens as a constant");
        assertThat(of(compared(sure, -0.93, -0.01, -0.01, -0.01, -0.01, -0.01, -0.01, -0.01))
                        .tooMuch())
                .isPresent();
        assertThat(of(compared(sure, -0.01, -0.01, -0.01, -0.01, -0.01, -0.01, -0.01, -0.13))
                        .tooMuch()) // 0.64 against 0.7406
                .as("more than a constant says")
                .isEmpty();
    }

    @Test
    void shouldKnowSumsThatCannotBe() {
        assertThat(LogProbDifference.arePossible(compared(scored(-0.0, -350, -1), -350, -0.0, -1)))
                .isTrue();
        assertThat(Stream.of(
                        new ComparedLogProbs("g", 0L, 9.0, 9.0, 0.0, 0.0),
                        new ComparedLogProbs("g", -9L, 9.0, 9.0, 0.0, 0.0),
                        new ComparedLogProbs("g", Long.MAX_VALUE, 9.0, 9.0, 0.0, 0.0),
                        new ComparedLogProbs("g", 9L, Double.NaN, 9.0, 0.0, 0.0),
                        new ComparedLogProbs("g", 9L, 9.0, Double.POSITIVE_INFINITY, 0.0, 0.0),
                        new ComparedLogProbs("g", 9L, -1.0, 9.0, 0.0, 0.0),
                        new ComparedLogProbs("g", 9L, 9.0, 8.9, 0.0, 0.0), // a mean of 1, and a mean square below
                        new ComparedLogProbs("g", 9L, 3151.0, 1e7, 0.0, 0.0), // more than 350 each
                        new ComparedLogProbs("g", 9L, 9.0, 9.0, 1.0, 1.0),
                        new ComparedLogProbs("g", 9L, 9.0, 9.0, -9.0, 8.9)))
                .noneMatch(LogProbDifference::arePossible);
    }

    @Test
    void shouldRefuseBoundsThatAreNone() {
        assertThatThrownBy(() -> new QuarantineConfig(64, 256, 0.5, Double.NaN, 4))
                .hasMessage("max_difference must be finite and at least 0, where 0 compares no log-probs: NaN");
        assertThatThrownBy(() -> new QuarantineConfig(64, 256, 0.5, 0.3, 0))
                .hasMessage("difference_tokens must be at least 1: 0");
    }
}
