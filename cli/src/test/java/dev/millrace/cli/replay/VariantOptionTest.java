package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.rollout.Rejection;
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
        Variant variant = variant("""
                algorithm: {masks: [], objective: {kind: decoupled_ppo}, epochs: 2}
                step: {shards: 3}
                """);
        assertThat(variant.name()).isEqualTo("other.yaml");
        assertThat(variant.algorithm().masks()).isEmpty();
        assertThat(variant.algorithm().ess()).isEqualTo(RUN.algorithm().ess());
        assertThat(variant.algorithm().objective()).isInstanceOf(DecoupledPpo.class);
        assertThat(variant.algorithm().epochs()).isEqualTo(2);
        assertThat(variant.step().shards()).isEqualTo(3);
        assertThat(variant.step().optimizer()).isEqualTo(RUN.learner().step().optimizer());
    }

    @Test
    void shouldTakeWhatCorrectionsAreNamedByElsewhere() throws Exception {
        assertThat(VariantOption.parse("none", RUN).algorithm().masks()).isEmpty();
        assertThat(VariantOption.parse("none", RUN).step())
                .isEqualTo(RUN.learner().step());
        assertThat(variant("masks: [{kind: m2po, threshold: 0.1}]\n")
                        .algorithm()
                        .masks())
                .containsExactly(new M2po(0.1, true));
        Rejection rejection = VariantOption.parse("decoupled_geo_rs(0.99_1.01)", RUN)
                .algorithm()
                .rejection();
        assertThat(rejection.rolloutRs()).isEqualTo("seq_mean_k1");
        assertThat(rejection.rolloutRsThreshold()).isEqualTo("0.99_1.01");
        assertThat(VariantOption.parse("gspo", RUN).algorithm().objective()).isEqualTo(Gspo.defaults());
    }

    @Test
    void shouldRefuseWhatCorrectsTwiceAndSayWhatToDo() throws Exception {
        assertThatThrownBy(() -> variant("objective: {kind: topr}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("other.yaml: ")
                .hasMessageContaining("objective.kind=topr")
                .hasMessageContaining("choose weights.kind=none");
        assertThatThrownBy(() -> variant("algorithm: {}\ntopologie: {}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("has the section topologie next to algorithm and step; leave it out");
        assertThatThrownBy(() -> variant("step: {shard: 2}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("did you mean shards");
    }
}
