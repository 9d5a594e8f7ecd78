package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** No stage goes on without what it needs: whatever is missing at a trained token stops the batch, with a sentence. */
class MissingInputTest {
    private static final TokenBatch TOKENS =
            new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 1, 0}, new int[] {0, 0});

    /** One configuration for every stage that can be configured, so that each of them is among those that run. */
    private static Stream<CorrectionConfig> stages() {
        RolloutCorrectionOptions weights = RolloutCorrectionOptions.defaults();
        return Stream.concat(
                Stream.of(ComparedPolicies.values())
                        .map(compare -> stage(
                                new RolloutCorrectionOptions("", compare, "sequence", "3.0", "seq_mean_k3", "0.5"),
                                false,
                                false)),
                Stream.of(stage(weights, true, false), stage(weights, false, true)));
    }

    private static CorrectionConfig stage(RolloutCorrectionOptions options, boolean sequenceMask, boolean m2po) {
        return new CorrectionConfig(
                options,
                AdvantageConfig.defaults(),
                new StalenessConfig(8, 60_000, 2),
                new SequenceMaskConfig(sequenceMask, 0.1),
                new M2poMaskConfig(m2po, 0.04, true),
                EssConfig.defaults(),
                MissingOldLogProbs.RECOMPUTE);
    }

    private static Stream<Arguments> missing() {
        return stages().flatMap(stage -> Stream.of("behavior", "old", "proximal")
                .filter(vector -> isNeeded(stage.rolloutCorrection().compare(), vector))
                .map(vector -> Arguments.of(stage, vector)));
    }

    /** The comparison's own two; beside them the others' batch-wide measures compare proximal and behavior. */
    private static boolean isNeeded(ComparedPolicies compare, String vector) {
        return switch (compare) {
            case ANCHOR -> !vector.equals("old");
            case ENGINE_MISMATCH -> !vector.equals("proximal");
            case STALENESS -> !vector.equals("behavior");
        };
    }

    private static BatchInput input(String missing, double[] rewards, long version) {
        return new BatchInput(
                TOKENS,
                new MemberLogProbs(
                        logProbs(missing.equals("behavior")),
                        logProbs(missing.equals("old")),
                        logProbs(missing.equals("proximal"))),
                new boolean[2],
                rewards,
                BatchVersions.wholeSequences(TOKENS, new long[] {5, version}),
                new long[] {5, 5},
                new long[2],
                6);
    }

    private static float[] logProbs(boolean missing) {
        float[] values = {-1f, -1.5f, -0.5f, -2f};
        if (missing) {
            Arrays.fill(values, 1, 2, Float.NaN);
        }
        return values;
    }

    @ParameterizedTest(name = "{1}, {0}")
    @MethodSource("missing")
    void shouldStopWhereALogProbOfATrainedTokenIsMissing(CorrectionConfig stage, String vector) {
        BatchCorrections corrections = new BatchCorrections(stage);

        assertThatThrownBy(() -> corrections.decide(input(vector, new double[] {1, 0}, 5)))
                .hasMessageContaining("log-probs must be finite at trained tokens: sequence=0, token=1, value=NaN");
    }

    @ParameterizedTest
    @MethodSource("stages")
    void shouldStopWhereARewardIsMissing(CorrectionConfig stage) {
        BatchCorrections corrections = new BatchCorrections(stage);

        assertThatThrownBy(() -> corrections.decide(input("", new double[] {1, Double.NaN}, 5)))
                .hasMessageContaining("reward");
    }

    @ParameterizedTest
    @MethodSource("stages")
    void shouldStopWhereATokenIsOfNoVersionYet(CorrectionConfig stage) {
        BatchCorrections corrections = new BatchCorrections(stage);

        assertThatThrownBy(() -> corrections.decide(input("", new double[] {1, 0}, 7)))
                .hasMessageContaining("version");
    }

    @Test
    void shouldNotMissWhatNoStageLooksAt() {
        assertThatCode(() -> stages().forEach(stage ->
                        new BatchCorrections(stage).decide(input("", new double[] {1, 0}, 5))))
                .doesNotThrowAnyException();
    }
}
