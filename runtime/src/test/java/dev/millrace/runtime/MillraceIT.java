package dev.millrace.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.millrace.policy.ort.Ort;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.metrics.WrittenEvent;
import dev.millrace.runtime.pipeline.StoppedException;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.runtime.train.RunEnd;
import dev.millrace.runtime.train.RunResult;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A run inside a program. */
@Timeout(900)
class MillraceIT {
    private static final Path SOURCE = Path.of("src/test/java/dev/millrace/runtime/MillraceIT.java");
    private static final Path DOCUMENTATION = Path.of("src/main/java/dev/millrace/runtime/package-info.java");

    @TempDir
    private Path temporary;

    @Test
    void shouldTrainAsItsDocumentationShowsAndGoOnInItsFolder() throws Exception {
        Path folder = temporary.resolve("run");
        // example
        MillraceConfig config = new ConfigLayers()
                .yaml("task: {kind: sort, digits: 2}", "the example")
                .set("learner.max_steps=3")
                .resolve();
        RunResult result = new Millrace(config).in(folder).run();
        double reward = result.summary().steps().get(2).reward();
        // end
        assertThat(result.end()).isEqualTo(RunEnd.LAST_STEP);
        assertThat(result.directory()).isEqualTo(folder);
        assertThat(result.summary().policyVersion()).isEqualTo(3);
        assertThat(reward).isBetween(0.0, 1.0);
        assertThat(WrittenEvent.ofRun(result.directory().resolve("curves").resolve(result.runId())))
                .extracting(WrittenEvent::step)
                .containsExactly(0L, 1L, 2L, 3L);

        StringWriter printed = new StringWriter();
        RunResult resumed = new Millrace(new ConfigLayers()
                        .yaml("task: {kind: sort, digits: 2}", "the example")
                        .set("learner.max_steps=4")
                        .set("metrics.tensorboard.directory=" + temporary.resolve("curves"))
                        .resolve())
                .in(folder)
                .printingTo(new PrintWriter(printed, true), new PrintWriter(printed, true))
                .run();
        assertThat(resumed.runId()).as("the folder's").isEqualTo(result.runId());
        assertThat(resumed.summary().steps()).hasSize(4);
        assertThat(resumed.summary().invocation().newSteps()).isEqualTo(1);
        assertThat(printed.toString()).startsWith("continuing run " + result.runId() + " in " + folder);

        List<WrittenEvent> curves =
                WrittenEvent.ofRun(temporary.resolve("curves").resolve(result.runId()));
        assertThat(curves)
                .as("the steps from before the files were wanted too, out of the log")
                .extracting(WrittenEvent::step)
                .containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(curves.get(3).values().get("critic/score/mean")).isCloseTo((float) reward, within(1e-6f));

        assertThatThrownBy(
                        () -> new Millrace(new ConfigLayers().set("run.seed=2").resolve())
                                .in(folder)
                                .run())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("it cannot change once a run has started");
    }

    @Test
    void shouldRefuseWhatCannotBeUsedBeforeTheBrokerStarts() {
        assumeFalse(Ort.providers().contains("CUDAExecutionProvider"), "built with -Pgpu");
        for (String setting : List.of("run.device=cuda:0", "run.schema_registry_url='http://127.0.0.1:1'")) {
            Path folder = temporary.resolve("refused");
            StringWriter printed = new StringWriter();
            Millrace run = new Millrace(new ConfigLayers().set(setting).resolve())
                    .in(folder)
                    .printingTo(new PrintWriter(printed, true), new PrintWriter(printed, true));
            assertThatThrownBy(run::run).hasMessageContaining(setting.substring(0, setting.indexOf('=')));
            assertThat(printed.toString()).startsWith("run ").doesNotContain("broker");
            assertThat(folder.resolve("broker")).doesNotExist();
            assertThat(RunDirectory.holdsRun(folder)).isFalse();
        }
    }

    @Test
    void shouldNotBeginOnceItIsStopped() {
        Millrace stopped = new Millrace(MillraceConfig.defaults()).in(temporary.resolve("stopped"));
        stopped.stop();
        assertThatThrownBy(stopped::run).isInstanceOf(StoppedException.class);
    }

    @Test
    void shouldShowInItsDocumentationWhatIsTestedHere() throws Exception {
        List<String> source = Files.readAllLines(SOURCE);
        List<String> example =
                source.subList(source.indexOf("        // example") + 1, source.indexOf("        // end"));
        assertThat(example).hasSizeGreaterThan(4);
        List<String> shown = Files.readAllLines(DOCUMENTATION).stream()
                .map(line -> line.replaceFirst("^ \\* ?", ""))
                .toList();
        assertThat(shown)
                .containsSubsequence(
                        example.stream().map(line -> line.substring(8)).toList());
    }
}
