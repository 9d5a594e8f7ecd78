package dev.millrace.corrections.ratio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.golden.GoldenAssertions;
import dev.millrace.corrections.golden.GoldenCase;
import dev.millrace.corrections.golden.GoldenCases;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ProximalApproximationTest {
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3}, new byte[] {0, 1, 1});
    private final float[] behavior = {-5f, -1f, -2f};
    private final float[] current = {-4f, -2f, -1f};
    private final float[] proximal = new float[3];

    @Test
    void shouldShareByVersionsBehind() {
        assertThat(ProximalApproximation.currentShare(3, 10)).isEqualTo(6.0 / 7);
        assertThat(ProximalApproximation.currentShare(9, 10)).isZero();
        assertThat(ProximalApproximation.currentShare(10, 10)).isZero();
        assertThat(ProximalApproximation.currentShare(-1, 10)).isZero();
    }

    @Test
    void shouldInterpolateInLogSpaceOrInProbabilitySpace() {
        ProximalApproximation.LOGLINEAR.compute(batch, behavior, current, new int[] {-1, 3, 4}, 5, proximal);
        assertThat(proximal).containsExactly(-5f, -1.5f, -2f);

        ProximalApproximation.LINEAR.compute(batch, behavior, current, new int[] {-1, 3, 4}, 5, proximal);
        assertThat(proximal[1]).isCloseTo((float) Math.log((Math.exp(-1) + Math.exp(-2)) / 2), within(1e-6f));
        assertThat(proximal[2]).isEqualTo(-2f);

        ProximalApproximation.BEHAVIOR.compute(batch, behavior, current, new int[] {-1, 3, 4}, 5, proximal);
        assertThat(proximal).isEqualTo(behavior);
    }

    @Test
    void shouldNotFlattenImprobableTokens() {
        assertThat(ProximalApproximation.LINEAR.at(-60, -70, 0.5)).isCloseTo(-60 + Math.log(0.5), within(1e-3));
        assertThat(ProximalApproximation.referenceLinear(-60, -70, 0.5)).isCloseTo(Math.log(1e-10), within(1e-9));
        assertThat(ProximalApproximation.LINEAR.at(-2000, -2000, 0.5)).isEqualTo(-2000.0);
    }

    @Test
    void shouldRefuseTrainedTokensWithoutVersionAndTokensOfTheFuture() {
        assertThatThrownBy(() -> ProximalApproximation.LOGLINEAR.compute(
                        batch, behavior, current, new int[] {-1, -1, 4}, 5, proximal))
                .hasMessageContaining("sequence=0, token=1, version=-1");
        assertThatThrownBy(() -> ProximalApproximation.LOGLINEAR.compute(
                        batch, behavior, current, new int[] {6, 1, 4}, 5, proximal))
                .hasMessageContaining("version=6");
        assertThatThrownBy(() ->
                        ProximalApproximation.LOGLINEAR.compute(batch, behavior, current, new int[2], 5, proximal))
                .hasMessageContaining("versions");
    }

    static List<GoldenCase> golden() {
        return GoldenCases.of("areal_prox_approx");
    }

    @ParameterizedTest
    @MethodSource("golden")
    void shouldAgreeWithTheReference(GoldenCase golden) {
        TokenBatch layout = golden.batch();
        float[] behave = golden.tokens("old_logprobs");
        float[] theta = golden.tokens("logprobs");
        int[] versions = DoubleStream.of(golden.tokenDoubles("versions"))
                .mapToInt(v -> (int) v)
                .toArray();
        int version = golden.config().path("current_version").asInt();
        float[] loglinear = new float[behave.length];
        float[] linear = new float[behave.length];
        float[] rollout = new float[behave.length];
        ProximalApproximation.LOGLINEAR.compute(layout, behave, theta, versions, version, loglinear);
        ProximalApproximation.LINEAR.compute(layout, behave, theta, versions, version, linear);
        ProximalApproximation.BEHAVIOR.compute(layout, behave, theta, versions, version, rollout);

        GoldenAssertions.assertMatches(golden, Map.of("loglinear", loglinear, "linear", linear, "rollout", rollout));
    }
}
