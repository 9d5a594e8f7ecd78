package dev.millrace.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.VersionKey;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;

class HeldOutTrialTest {
    private static final RunIdentity RUN = new RunIdentity("run-h", 0, "policy");
    private static final Clock CLOCK = Clock.fixed(Instant.ofEpochMilli(7), ZoneOffset.UTC);

    private final Engine engine = new Engine(Device.parse("cpu"), 1);

    private static MillraceConfig config(String... settings) {
        ConfigLayers layers =
                new ConfigLayers().set("evaluation={prompts: 6, samples: 4}").set("run.seed=3");
        for (String setting : settings) {
            layers.set(setting);
        }
        return layers.resolve();
    }

    private VersionEvaluation of(MillraceConfig config, long version) {
        return of(config, version, () -> {});
    }

    private VersionEvaluation of(MillraceConfig config, long version, Runnable goesOn) {
        DecoderShape shape =
                config.model().shape(config.task().task().tokenizer().vocabSize());
        HeldOutTrial trial = new HeldOutTrial(RUN, config, config.task(), config.evaluation(), engine, CLOCK);
        Weights weights = Weights.random(shape, 5);
        return trial.of(
                new VersionKey("policy", 0, version), "of-" + version, weights, () -> Optional.of(weights), 2, goesOn);
    }

    @Test
    void shouldComeOutTheSameBitForBit() {
        assertThat(of(config(), 8)).isEqualTo(of(config(), 8));
        assertThat(of(config("generator.slots=3"), 8))
                .as("with however many at a time")
                .isEqualTo(of(config(), 8));
    }

    @Test
    void shouldDrawByTheRunsSeedAndTheVersion() {
        VersionEvaluation evaluation = of(config(), 8);

        assertThat(of(config(), 9).getSampling().getSeed())
                .isNotEqualTo(evaluation.getSampling().getSeed());
        assertThat(of(config("run.seed=4"), 8).getSampling().getSeed())
                .isNotEqualTo(evaluation.getSampling().getSeed());
        assertThat(of(config(), 9).getDataSha256()).as("the same prompts").isEqualTo(evaluation.getDataSha256());
        assertThat(of(config("evaluation.prompts=5"), 8).getDataSha256())
                .as("one prompt less")
                .isNotEqualTo(evaluation.getDataSha256());
    }

    @Test
    void shouldSayNothingThatItsCountsDoNotSay() {
        VersionEvaluation evaluation = of(config(), 8);

        assertThat(EvaluationRecords.recomputed(evaluation)).isEqualTo(evaluation);
        assertThat(evaluation.getPrompts()).hasSize(6);
        assertThat(EvaluationRecords.responses(evaluation)).isEqualTo(24);
        assertThat(evaluation.getPassedOver()).isEqualTo(2);
        assertThat(evaluation.getRewardMean())
                .isEqualTo(evaluation.getPrompts().stream()
                        .mapToDouble(EvaluatedPrompt::getRewardSum)
                        .map(sum -> sum / 4)
                        .average()
                        .orElseThrow());
        assertThat(evaluation.getStartLogProb()).isBetween(-20.0, -0.5);
        VersionEvaluation changed = EvaluationRecords.recomputed(evaluation);
        changed.put(changed.getSchema().getField("reward_mean").pos(), evaluation.getRewardMean() + 0.01);
        assertThat(EvaluationRecords.recomputed(changed))
                .as("a figure that somebody changed")
                .isNotEqualTo(changed);
    }

    @Test
    void shouldEndWhereItIsStopped() {
        int[] calls = new int[1];

        assertThatThrownBy(() -> of(config(), 8, () -> {
                    if (++calls[0] == 2) {
                        throw new CancellationException("stopped");
                    }
                }))
                .isInstanceOf(CancellationException.class);
    }
}
