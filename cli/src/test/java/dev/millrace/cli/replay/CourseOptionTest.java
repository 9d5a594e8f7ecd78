package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.cli.config.ConfigException;
import dev.millrace.cli.config.MillraceConfig;
import dev.millrace.counterfactual.Course;
import dev.millrace.learner.objective.DecoupledPpoConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CourseOptionTest {
    private static final MillraceConfig RUN = MillraceConfig.defaults();

    @TempDir
    private Path folder;

    private Course course(String yaml) throws Exception {
        return CourseOption.parse(
                Files.writeString(folder.resolve("other.yaml"), yaml).toString(), RUN);
    }

    @Test
    void shouldPutTheSectionsOverTheRunsOwn() throws Exception {
        Course course =
                course("corrections: {m2po: {enabled: false}}\nstep: {objective: {kind: decoupled_ppo}, epochs: 2}\n");
        assertThat(course.name()).isEqualTo("other.yaml");
        assertThat(course.corrections().m2po().enabled()).isFalse();
        assertThat(course.corrections().ess())
                .isEqualTo(RUN.topology().corrections().ess());
        assertThat(course.step().objective()).isInstanceOf(DecoupledPpoConfig.class);
        assertThat(course.step().epochs()).isEqualTo(2);
        assertThat(course.step().optimizer()).isEqualTo(RUN.learner().step().optimizer());
    }

    @Test
    void shouldTakeWhatCorrectionsAreNamedByElsewhere() throws Exception {
        assertThat(CourseOption.parse("none", RUN).corrections().m2po().enabled())
                .isFalse();
        assertThat(CourseOption.parse("none", RUN).step())
                .isEqualTo(RUN.learner().step());
        assertThat(course("m2po: {threshold: 0.1}\n").corrections().m2po().threshold())
                .isEqualTo(0.1);
        assertThat(CourseOption.parse("decoupled_geo_rs", RUN)
                        .corrections()
                        .rolloutCorrection()
                        .preset())
                .isEqualTo("decoupled_geo_rs");
    }

    @Test
    void shouldRefuseWhatCorrectsTwiceAndSayWhatToDo() throws Exception {
        assertThatThrownBy(() -> course("step: {objective: {kind: ppo_clip}}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("learner.step.objective.kind is ppo_clip")
                .hasMessageContaining("sections corrections and step");
        assertThatThrownBy(() -> course("corrections: {}\ntopologie: {}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("has the section topologie beside corrections and step; leave it out");
        assertThatThrownBy(() -> course("step: {epoch: 2}\n"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("did you mean epochs");
    }
}
