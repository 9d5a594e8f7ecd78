package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class VariantOptionTest {
    private static final MillraceConfig RUN = MillraceConfig.defaults();

    @TempDir
    private Path folder;

    private Variant variant(String yaml) throws Exception {
        return VariantOption.parse(
                Files.writeString(folder.resolve("other.yaml"), yaml).toString(), RUN);
    }

    @Test
    void shouldPutTheSectionsOverTheRunsOwn() throws Exception {
        Variant variant =
                variant("corrections: {m2po: {enabled: false}}\nstep: {objective: {kind: decoupled_ppo}, epochs: 2}\n");
        assertThat(variant.name()).isEqualTo("other.yaml");
        assertThat(variant.corrections().m2po().enabled()).isFalse();
        assertThat(variant.corrections().ess())
                .isEqualTo(RUN.topology().corrections().ess());
        assertThat(variant.step().objective()).isInstanceOf(DecoupledPpo.class);
        assertThat(variant.step().epochs()).isEqualTo(2);
        assertThat(variant.step().optimizer()).isEqualTo(RUN.learner().step().optimizer());
    }

    @Test
    void shouldTakeWhatCorrectionsAreNamedByElsewhere() throws Exception {
        assertThat(VariantOption.parse("none", RUN).corrections().m2po().enabled())
                .isFalse();
        assertThat(VariantOption.parse("none", RUN).step())
                .isEqualTo(RUN.learner().step());
        assertThat(variant("m2po: {threshold: 0.1}\n").corrections().m2po().threshold())
                .isEqualTo(0.1);
        assertThat(VariantOption.parse("decoupled_geo_rs", RUN)
                        .corrections()
                        .rolloutCorrection()
                        .preset())
                .isEqualTo("decoupled_geo_rs");
    }

    @Test
    void shouldRefuseWhatCorrectsTwiceAndSayWhatToDo() throws Exception {
        assertThatThrownBy(() -> variant("step: {objective: {kind: ppo_clip}}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("learner.step.objective.kind is ppo_clip")
                .hasMessageContaining("sections corrections and step");
        assertThatThrownBy(() -> variant("corrections: {}\ntopologie: {}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("has the section topologie beside corrections and step; leave it out");
        assertThatThrownBy(() -> variant("step: {epoch: 2}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("did you mean epochs");
    }
}
