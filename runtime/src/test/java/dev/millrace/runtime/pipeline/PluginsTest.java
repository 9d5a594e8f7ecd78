package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.catalogue.LoadedPlugin;
import dev.millrace.api.catalogue.LoadedPlugin.Origin;
import dev.millrace.api.catalogue.PluginException;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.step.CompletedStep;
import dev.millrace.api.step.StepObserver;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class PluginsTest {
    public record Patient(int steps, List<String> names) implements StepObserver {
        @Override
        public void stepCompleted(CompletedStep step) {
            throw new UnsupportedOperationException("nobody makes a step here");
        }
    }

    public record Timed(Duration pause) implements StepObserver {
        @Override
        public void stepCompleted(CompletedStep step) {
            throw new UnsupportedOperationException("nobody makes a step here");
        }
    }

    private static void require(Record record) {
        Kind kind = Kind.of(StepObserver.class, "observer", record, "Of a test.");
        Plugins.requireConfigurable(new LoadedPlugin("lab", Origin.JAR, "/lab.jar", "1.0", List.of(kind)), kind);
    }

    @Test
    void shouldTakeWhatComesBackFromItsKeys() {
        assertThatCode(() -> require(new Patient(3, List.of("a")))).doesNotThrowAnyException();
    }

    @Test
    void shouldRefuseARecordThatNoConfigurationCanHold() {
        assertThatThrownBy(() -> require(new Timed(Duration.ofSeconds(3))))
                .isInstanceOf(PluginException.class)
                .hasMessageStartingWith(
                        "the plug-in /lab.jar offers observer, which cannot be configured: pause has a type that"
                                + " no configuration record may use: class java.time.Duration; its components may be numbers");
    }

    @Test
    void shouldHaveTheBuiltInKindsWithoutAnyPath() {
        assertThat(Plugins.install(List.of()).kinds(StepObserver.class)).isEmpty();
        assertThat(Plugins.install(List.of()).plugins())
                .extracting(LoadedPlugin::name)
                .contains("tasks", "algorithm");
    }
}
