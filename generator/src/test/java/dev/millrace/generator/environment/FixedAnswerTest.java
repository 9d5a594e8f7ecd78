package dev.millrace.generator.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.StepResult;
import dev.millrace.generator.environment.BuiltInTasks.SortPrompts;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FixedAnswerTest {

    @Test
    void shouldRewardTheFractionOfRightPositions() {
        Episode episode = new FixedAnswer().begin("0451");
        WrittenResponse response = new WrittenResponse();

        assertThat(response.policy(Symbols.digit(0), episode)).isSameAs(StepResult.GO_ON);
        assertThat(response.policy(Symbols.digit(4), episode)).isSameAs(StepResult.GO_ON);
        assertThat(response.policy(Symbols.digit(1), episode)).isSameAs(StepResult.GO_ON);
        assertThat(response.policy(Symbols.digit(1), episode)).isSameAs(StepResult.END);

        // 0, 4 and the last 1 are right, the third position is not
        assertThat(episode.verify(response).reward()).isEqualTo(0.75);
        assertThat(episode.verify(response).components())
                .containsEntry("right", 3.0)
                .containsEntry("wrong", 1.0);
    }

    @Test
    void shouldCountMissingPositionsAsWrong() {
        Episode episode = new FixedAnswer().begin("99999");
        WrittenResponse response = new WrittenResponse();
        response.policy(Symbols.digit(9), episode);

        assertThat(episode.verify(response).reward()).isEqualTo(0.2);
        assertThat(episode.verify(new WrittenResponse()).reward()).isZero();
    }

    @Test
    void shouldTreatTheEndTokenAsAWrongAnswer() {
        assertThat(new FixedAnswer().endToken()).isEqualTo(-1);
        Episode episode = new FixedAnswer().begin("12");
        WrittenResponse response = new WrittenResponse();

        assertThat(response.policy(Symbols.END, episode)).isSameAs(StepResult.GO_ON);
        assertThat(response.policy(Symbols.digit(2), episode)).isSameAs(StepResult.END);
        assertThat(episode.verify(response).reward()).isEqualTo(0.5);
    }

    @Test
    void shouldRefuseAStateThatIsNoAnswer() {
        assertThatThrownBy(() -> new FixedAnswer().begin("")).hasMessageContaining("empty");
        assertThatThrownBy(() -> new FixedAnswer().begin("12x4")).hasMessageContaining("'12x4' at position 2");
    }

    @Test
    void shouldAskForEachDigitPlusOneModuloTen() {
        Set<Integer> digits = new HashSet<>();
        for (long ordinal = 0; ordinal < 50; ordinal++) {
            Prompt prompt = new IncPrompts(5).prompt(7, ordinal);
            assertThat(prompt.tokens()).hasSize(7).startsWith(Symbols.BEGIN).endsWith(Symbols.SEPARATOR);
            for (int i = 0; i < 5; i++) {
                int digit = Symbols.digitOf(prompt.tokens()[i + 1]);
                digits.add(digit);
                assertThat(prompt.environmentState().charAt(i) - '0').isEqualTo(digit == 9 ? 0 : digit + 1);
            }
        }
        assertThat(digits).containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    }

    @Test
    void shouldAskForTheDigitsInAscendingOrder() {
        Prompt prompt = new SortPrompts(4).prompt(7, 3);
        StringBuilder asked = new StringBuilder();
        for (int i = 1; i <= 4; i++) {
            asked.append(Symbols.digitOf(prompt.tokens()[i]));
        }
        assertThat(prompt.environmentState().chars().toArray())
                .isSorted()
                .isEqualTo(asked.chars().sorted().toArray());
    }

    @Test
    void shouldMakeTheSamePromptAgainAndAnotherForAnotherSeedOrOrdinal() {
        IncPrompts prompts = new IncPrompts(8);
        assertThat(prompts.prompt(1, 2).tokens()).isEqualTo(prompts.prompt(1, 2).tokens());
        assertThat(prompts.prompt(1, 2).tokens())
                .isNotEqualTo(prompts.prompt(1, 3).tokens());
        assertThat(prompts.prompt(1, 2).tokens())
                .isNotEqualTo(prompts.prompt(2, 2).tokens());
    }

    @Test
    void shouldRefuseADigitCountOutOfBounds() {
        assertThatThrownBy(() -> new IncPrompts(0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("digits must be 1 to 64 for the task inc: 0");
        assertThatThrownBy(() -> new SortPrompts(65)).hasMessage("digits must be 1 to 64 for the task sort: 65");
    }
}
