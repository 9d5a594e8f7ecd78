package dev.millrace.corrections.staleness;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.stage.AbsentInputException;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.List;
import org.junit.jupiter.api.Test;

class StalenessStagesTest {
    @Test
    void shouldMaskTokensOfVersionsBehindTheLimit() {
        Decision decision = decide(facts(), new StalenessLimit(2));

        assertThat(decision.left().mask()).containsExactly(0, 0, 0, 0, 1, 1, 1, 1);
        assertThat(decision.maskedBy()).containsExactly("staleness", "staleness", null, null);
        StageOutcome outcome = last(decision);
        assertThat(outcome.unit()).isEqualTo(CorrectionUnit.TOKEN);
        assertThat(outcome.tokensSeen()).isEqualTo(8);
        assertThat(outcome.tokensActed()).isEqualTo(4);
        assertThat(outcome.sequencesActed()).isEqualTo(2);
        assertThat(outcome.values())
                .containsOnlyKeys("max_versions", "current_version", "mean", "oldest")
                .containsEntry("max_versions", 2.0)
                .containsEntry("current_version", 7.0)
                .containsEntry("mean", (4 + 3 + 2 + 2) / 4.0)
                .containsEntry("oldest", 4.0);
    }

    @Test
    void shouldRejectSequencesWithATokenBehindTheLimit() {
        TokenBatch tokens = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 1, 0, 1, 1});
        BatchVersions versions = new BatchVersions(
                tokens,
                List.of(
                        List.of(new VersionSpan(6, 0, 1), new VersionSpan(10, 1, 3)),
                        List.of(new VersionSpan(7, 0, 2))));
        Decision decision =
                decide(StageFacts.of(tokens, new double[2]).versions(10, versions), new StaleSequenceMask(3));

        assertThat(decision.left().mask()).containsExactly(0, 0, 0, 1, 1);
        assertThat(decision.maskedBy()).containsExactly("stale_sequences", null);
        assertThat(last(decision).values()).containsEntry("oldest", 4.0).containsEntry("max_versions", 3.0);
        assertThatThrownBy(() -> new StaleSequenceMask(-1)).hasMessageContaining("max_versions must be at least 0");
    }

    @Test
    void shouldMaskSequencesThatAreTooOldInTime() {
        Decision decision = decide(facts(), new AgeLimit(2500));

        assertThat(decision.left().mask()).containsExactly(1, 1, 1, 1, 0, 0, 0, 0);
        assertThat(decision.maskedBy()).containsExactly(null, null, "age", "age");
        assertThat(last(decision).values()).containsEntry("max_age_ms", 2500.0).containsEntry("oldest_ms", 4000.0);
        assertThat(decide(facts(), new AgeLimit(4000)).left().trainedTokens())
                .as("an age at the limit is admitted")
                .isEqualTo(8);
    }

    @Test
    void shouldHalveWeightsForEveryHalfLife() {
        Decision decision = decide(facts(), new StalenessDamping(2)); // 4, 3, 2, 2 versions behind

        float third = (float) Math.pow(2, -1.5);
        assertThat(decision.weights()).containsExactly(0.25f, 0.25f, third, third, 0.5f, 0.5f, 0.5f, 0.5f);
        assertThat(last(decision).stage()).isEqualTo("staleness_weights");
        assertThat(last(decision).tokensActed()).isEqualTo(8);
        assertThat(last(decision).values())
                .containsEntry("half_life_versions", 2.0)
                .containsEntry("mean_factor", (0.25 + Math.pow(2, -1.5) + 0.5 + 0.5) / 4);
    }

    @Test
    void shouldLeaveTokensOfTheCurrentVersionTheirWeight() {
        TokenBatch tokens = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 1, 0, 1, 1});
        BatchVersions versions = new BatchVersions(
                tokens,
                List.of(
                        List.of(new VersionSpan(6, 0, 1), new VersionSpan(8, 1, 3)),
                        List.of(new VersionSpan(10, 0, 2))));
        Decision decision =
                decide(StageFacts.of(tokens, new double[2]).versions(10, versions), new StalenessDamping(2));

        assertThat(decision.weights()).containsExactly(0.25f, 0.5f, 0f, 1f, 1f);
        assertThat(last(decision).tokensActed()).isEqualTo(2);
        assertThat(last(decision).sequencesActed()).isEqualTo(1);
    }

    @Test
    void shouldMaskDriftedSequencesOfNegativeAdvantageOnly() {
        Decision decision = decide(facts(-1, -1, -1, -1, 0, 0, -0.1, -0.05), Grpo.defaults(), SequenceMask.defaults());

        assertThat(decision.left().mask()).containsExactly(1, 1, 0, 0, 1, 1, 1, 1);
        assertThat(decision.maskedBy()).containsExactly(null, "sequence_mask", null, null);
        assertThat(last(decision).values()).containsEntry("negative_sequences", 2.0);
    }

    @Test
    void shouldMaskOrCountSequencesWithoutOldLogProbs() {
        boolean[] without = {false, true, false, false};
        Decision masked = decide(facts().withoutOld(without), MissingOldLogProbs.MASK.stage());
        Decision interpolated = decide(facts().withoutOld(without), MissingOldLogProbs.INTERPOLATE.stage());

        assertThat(masked.left().mask()).containsExactly(1, 1, 0, 0, 1, 1, 1, 1);
        assertThat(masked.maskedBy()).containsExactly(null, "missing_old_log_probs", null, null);
        assertThat(interpolated.left().trainedTokens()).isEqualTo(8);
        assertThat(List.of(last(masked).values(), last(interpolated).values()))
                .allSatisfy(values -> assertThat(values)
                        .containsEntry("sequences_without", 1.0)
                        .containsEntry("tokens_without", 2.0));
    }

    @Test
    void shouldNotBeMissingAFigureForABatchWithNothingLeft() {
        StageFacts starved = StageExamples.starved();
        Decision decision = StageBatch.decide(
                starved,
                List.of(
                        new StalenessLimit(2),
                        new AgeLimit(10),
                        new StalenessDamping(1),
                        SequenceMask.defaults(),
                        MissingOldLogProbs.MASK.stage()));

        assertThat(decision.outcomes())
                .hasSize(5)
                .allSatisfy(outcome -> assertThat(outcome.tokensActed()).isZero());
        assertThat(decision.outcomes().get(2).values()).doesNotContainKey("mean_factor");
    }

    @Test
    void shouldRefuseWhatCannotAct() {
        assertThatThrownBy(() -> new StalenessLimit(-1)).hasMessageContaining("max_versions must be at least 0: -1");
        assertThatThrownBy(() -> new AgeLimit(0)).hasMessageContaining("max_age_ms must be at least 1");
        assertThatThrownBy(() -> new StalenessDamping(0)).hasMessageContaining("half_life_versions must be positive");
        assertThatThrownBy(
                        () -> decide(StageFacts.of(StageExamples.starved().tokens(), new double[4]), new AgeLimit(1)))
                .isInstanceOf(AbsentInputException.class)
                .hasMessageContaining("the batch has no ages");
    }
}
