package dev.millrace.workloads.closed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Sample;
import dev.millrace.workloads.closed.EngineRates.LogProbGap;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class EngineTrialTest {
    private static final DecoderShape SHAPE = new DecoderShape(64, 16, 2, 4, 2, 4, 32, 32, 10_000, 1e-5, true, false);

    @ParameterizedTest
    @EnumSource(WeightPlacement.class)
    void shouldMeasureEveryRoundAndFindThatThePassesAgree(WeightPlacement placement) {
        EnginePlan plan = new EnginePlan(
                3, 5, 6, 4, 64, placement, Precision.F32, 2); // the last call has fewer steps than it may
        Weights weights = Weights.random(SHAPE, 1);
        EngineRates rates;
        try (EngineTrial trial = new EngineTrial(Engine.cpu(), weights, plan)) {
            rates = trial.measure();
        }
        assertThat(Stream.of(
                                rates.work().prefill(),
                                rates.work().decode(),
                                rates.work().score(),
                                rates.work().gradient(),
                                rates.work().update(),
                                rates.work().step())
                        .map(Sample::count))
                .containsOnly(2);
        assertThat(rates.pack() != null).isEqualTo(placement == WeightPlacement.PACKED);
        assertThat(rates.takeUp() != null).isEqualTo(placement == WeightPlacement.PACKED);
        // what was drawn is what was scored: any other token would be nats away
        assertThat(rates.gaps().decodeAndScore().most()).isPositive().isLessThan(1e-4);
        assertThat(rates.gaps().deviceAndCpu()).isNull(); // nothing to compare with
        assertThat(weights.tensor("model.norm.weight"))
                .isNotEqualTo(Weights.random(SHAPE, 1).tensor("model.norm.weight"));
    }

    @Test
    void shouldCountTheTokensThatRatesAreOf() {
        EnginePlan plan = new EnginePlan(8, 100, 50, 4, 64, WeightPlacement.AUTO, Precision.F32, 1);
        Sample two = Sample.of(List.of(2.0));
        EngineRates rates = new EngineRates(
                plan,
                new EngineRates.Work(two, two, two, two, two, two),
                null,
                null,
                new EngineRates.Gaps(LogProbGap.NONE, null, null));
        assertThat(rates.prefillRate()).isEqualTo(400);
        assertThat(rates.decodeRate()).isEqualTo(200);
        assertThat(rates.scoreRate()).isEqualTo(600);
        assertThat(rates.gradientRate()).isEqualTo(600);
    }

    @Test
    void shouldTakeTheGapOfEachTokenWithoutItsSign() {
        LogProbGap gap = LogProbGap.between(new float[] {-1, -2, -3}, new float[] {-1.5f, -1.75f, -3});
        assertThat(gap.mean()).isCloseTo(0.25, within(1e-9));
        assertThat(gap.most()).isEqualTo(0.5);
        double[] ratios = {Math.exp(-0.5), Math.exp(0.25), 1};
        assertThat(gap.kl()).isCloseTo((ratios[0] - 1 + 0.5 + ratios[1] - 1 - 0.25) / 3, within(1e-9));
        assertThat(gap.ess())
                .isCloseTo(
                        Math.pow(ratios[0] + ratios[1] + 1, 2)
                                / (3 * (ratios[0] * ratios[0] + ratios[1] * ratios[1] + 1)),
                        within(1e-9));
        assertThatThrownBy(() -> LogProbGap.between(new float[1], new float[2]))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void shouldFindTheGapThatThePrecisionOfTheSamplerMakes() {
        MismatchTrial trial = new MismatchTrial(
                Engine.cpu(),
                Weights.random(SHAPE, 1),
                new EnginePlan(4, 5, 8, 4, 64, WeightPlacement.AUTO, Precision.F32, 2));
        MismatchTrial.Mismatch none = trial.measure(Precision.F32).get(0);
        assertThat(none.tokens()).isEqualTo(64);
        assertThat(none.gap().most()).isLessThan(1e-4);
        assertThat(none.gap().ess()).isGreaterThan(0.999999);
        for (Precision precision : List.of(Precision.BF16, Precision.INT8)) {
            LogProbGap gap = trial.measure(precision).get(0).gap();
            assertThat(gap.mean()).as(precision.name()).isBetween(1e-4, 0.1);
            assertThat(gap.kl()).as(precision.name()).isBetween(1e-9, 0.01);
            assertThat(gap.ess()).as(precision.name()).isLessThan(0.999999);
        }
    }

    @Test
    void shouldMeasureTheGapWithAndWithoutTheRoutingReplayed() {
        DecoderShape experts = new DecoderShape(40, 16, 2, 2, 2, 8, 24, 64, 100, 1e-6, false, false)
                .with(new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(6, 2, 8, true)));
        Weights weights = Weights.random(experts, 1);
        MismatchTrial trial = new MismatchTrial(
                Engine.cpu(), weights, new EnginePlan(4, 5, 16, 4, 64, WeightPlacement.AUTO, Precision.F32, 6));
        List<MismatchTrial.Mismatch> found = trial.measure(Precision.INT8);
        assertThat(found)
                .extracting(MismatchTrial.Mismatch::routing)
                .containsExactly(MismatchTrial.Routing.OWN, MismatchTrial.Routing.REPLAYED);
        assertThat(found.get(0).otherExperts()).isBetween(1e-6, 0.5);
        assertThat(found.get(1).gap().most()).isLessThan(found.get(0).gap().most());
        assertThat(trial.measure(Precision.F32).get(1).gap().most()).isLessThan(1e-4);
    }

    @Test
    void shouldNameTheSizesThereAre() {
        assertThat(EngineModel.parse("15m").shape().parameterCount()).isEqualTo(15_191_712);
        assertThat(EngineModel.parse("494M").shape().parameterCount()).isEqualTo(494_032_768);
        assertThat(EngineModel.parse("1.5b").shape().parameterCount()).isEqualTo(1_543_714_304);
        assertThatThrownBy(() -> EngineModel.parse("7b")).hasMessage("size must be 15m, 110m, 494m or 1.5b: 7b");
    }

    @Test
    void shouldSayHowAJvmMayTakeWhatAModelTakes() {
        MemoryNeed need = MemoryNeed.of(494_032_768);
        assertThat(need.refusal("494m", need.heapBytes(), need.directBytes())).isEmpty();
        assertThat(need.refusal("494m", need.heapBytes(), need.directBytes() - 1))
                .hasValue(
                        "494m takes 2.5 GB of heap and 8.4 GB outside it, and this JVM may take 2.5 and 8.4; begin with"
                                + " MILLRACE_OPTS='-Xmx2397m -XX:MaxDirectMemorySize=8051m', or measure a smaller one");
    }
}
