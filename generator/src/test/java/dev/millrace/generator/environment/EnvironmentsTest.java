package dev.millrace.generator.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.answer.IncPrompts;
import dev.millrace.generator.environment.answer.SortPrompts;
import dev.millrace.generator.environment.guess.Guess;
import dev.millrace.generator.environment.guess.GuessPrompts;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class EnvironmentsTest {

    @Test
    void shouldKnowTheEnvironmentOfEveryTask() {
        for (String name : TaskConfig.names()) {
            Task task = named(name).task();
            assertThat(Environments.builtIn().named(task.environment().name()).getClass())
                    .isEqualTo(task.environment().getClass());
            Prompt prompt = task.prompts().prompt(3, 14);
            assertThat(prompt.tokens().length).isLessThanOrEqualTo(task.promptTokens());
            assertThat(task.environment().begin(prompt.environmentState())).isNotNull();
        }
    }

    @Test
    void shouldNeedTwelvePositionsForTheDefaultTask() {
        assertThat(TaskConfig.defaults().task().capacityTokens()).isEqualTo(12);
    }

    @Test
    void shouldNameTheNearestEnvironmentOfAnUnknownOne() {
        assertThatThrownBy(() -> Environments.builtIn().named("gues"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("unknown environment: 'gues'; did you mean guess? Known are fixed-answer, guess");
    }

    @Test
    void shouldNameTheNearestTaskOfAnUnknownOne() {
        assertThatThrownBy(() -> named("srt"))
                .hasMessage("name must be a known task: 'srt'; did you mean sort? Known are inc, sort, guess");
    }

    @Test
    void shouldRefuseTwoEnvironmentsOfOneName() {
        assertThatThrownBy(() -> new Environments(List.of(new Guess(), new Guess())))
                .hasMessageContaining("two environments are named guess");
    }

    @Test
    void shouldGiveEverySymbolATokenOfItsOwn() {
        assertThat(Symbols.names()).hasSize(16).doesNotHaveDuplicates();
        assertThat(Symbols.names().get(Symbols.digit(7))).isEqualTo("7");
        assertThat(Symbols.names().get(Symbols.HIGHER)).isEqualTo("<higher>");
        assertThat(Symbols.names().get(Symbols.FOUND)).isEqualTo("<found>");
        assertThat(Symbols.digitOf(Symbols.digit(9))).isEqualTo(9);
        assertThat(Symbols.digitOf(Symbols.SEPARATOR)).isEqualTo(-1);
        assertThat(Symbols.digitOf(Symbols.HIGHER)).isEqualTo(-1);
    }

    @Test
    void shouldRefuseARewardThatIsNoNumber() {
        assertThatThrownBy(() -> new VerifiedReward(Double.NaN, Map.of())).hasMessageContaining("must be finite: NaN");
    }

    private static TaskConfig named(String name) {
        return new TaskConfig(name, IncPrompts.defaults(), SortPrompts.defaults(), GuessPrompts.defaults());
    }
}
