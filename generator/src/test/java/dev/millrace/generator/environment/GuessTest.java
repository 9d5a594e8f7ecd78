package dev.millrace.generator.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.StepResult;
import org.junit.jupiter.api.Test;

class GuessTest {
    private final WrittenResponse response = new WrittenResponse();

    @Test
    void shouldAnswerHigherThenLowerThenFound() {
        Episode game = new Guess().begin("42/5");

        assertThat(guess(game, 1, 0).tokens()).containsExactly(Symbols.HIGHER);
        assertThat(guess(game, 9, 9).tokens()).containsExactly(Symbols.LOWER);
        var last = guess(game, 4, 2);

        assertThat(last.tokens()).containsExactly(Symbols.FOUND);
        assertThat(last.ends()).isTrue();
        assertThat(response.tokens())
                .containsExactly(
                        Symbols.digit(1),
                        Symbols.digit(0),
                        Symbols.HIGHER,
                        Symbols.digit(9),
                        Symbols.digit(9),
                        Symbols.LOWER,
                        Symbols.digit(4),
                        Symbols.digit(2),
                        Symbols.FOUND);
        assertThat(response.byPolicy(2)).isFalse();
        assertThat(response.byPolicy(3)).isTrue();
        assertThat(game.verify(response).reward()).isEqualTo(1.0);
        assertThat(game.verify(response).components()).containsEntry("guesses", 3.0);
    }

    @Test
    void shouldRewardANumberFoundWithTheLastGuessAsMuchAsWithTheFirst() {
        Episode first = new Guess().begin("7/4");
        guess(first, 7);
        assertThat(first.verify(response).reward()).isEqualTo(1.0);

        WrittenResponse slow = new WrittenResponse();
        Episode last = new Guess().begin("7/4");
        for (int digit : new int[] {4, 5, 6, 7}) {
            slow.policy(Symbols.digit(digit), last);
        }
        assertThat(last.verify(slow).reward()).isEqualTo(1.0);
    }

    @Test
    void shouldAlwaysBeWonByHalvingTheRange() {
        for (int number = 0; number < 10; number++) {
            Episode game = new Guess().begin(number + "/4");
            WrittenResponse halving = new WrittenResponse();
            int low = 0;
            int high = 9;
            StepResult result = StepResult.GO_ON;
            while (!result.ends()) {
                int guess = (low + high) / 2;
                result = halving.policy(Symbols.digit(guess), game);
                if (result.tokens().length > 0 && result.tokens()[0] == Symbols.HIGHER) {
                    low = guess + 1;
                } else {
                    high = guess - 1;
                }
            }
            assertThat(game.verify(halving).reward()).as("number %d", number).isEqualTo(1.0);
        }
    }

    @Test
    void shouldEndWithoutAWordAfterTheLastWrongGuess() {
        Episode game = new Guess().begin("7/2");
        assertThat(guess(game, 3).ends()).isFalse();
        var last = guess(game, 4);
        assertThat(last.ends()).isTrue();
        assertThat(last.tokens()).isEmpty();
        assertThat(game.verify(response).reward()).isZero();
        assertThat(game.verify(response).components()).containsEntry("guesses", 2.0);
    }

    @Test
    void shouldEndWhenATokenIsNoDigit() {
        Episode game = new Guess().begin("07/5");
        assertThat(response.policy(Symbols.digit(0), game).ends()).isFalse();
        assertThat(response.policy(Symbols.FOUND, game).ends()).isTrue();
        assertThat(game.verify(response).reward()).isZero();
    }

    @Test
    void shouldNotRewardAWordOfTheEnvironmentWrittenByThePolicyNorADigitThePolicyDidNotWrite() {
        Episode game = new Guess().begin("7/5");
        response.append(Symbols.digit(7), false);
        assertThat(game.verify(response).reward()).isZero();
    }

    @Test
    void shouldVerifyAResponseCutInTheMiddleOfAGuess() {
        Episode game = new Guess().begin("42/5");
        guess(game, 1, 0);
        response.policy(Symbols.digit(4), game);
        assertThat(game.verify(response).reward()).isZero();
        assertThat(game.verify(response).components()).containsEntry("guesses", 1.0);
    }

    @Test
    void shouldKeepTheSecretOutOfThePrompt() {
        GuessPrompts prompts = new GuessPrompts(2, 5);
        Prompt prompt = prompts.prompt(1, 1);
        assertThat(prompt.tokens()).containsExactly(Symbols.BEGIN, Symbols.SEPARATOR);
        assertThat(prompt.environmentState()).matches("[0-9]{2}/5");
        assertThat(prompts.prompt(1, 2).environmentState()).isNotEqualTo(prompt.environmentState());
        assertThat(prompts.responseTokens()).isEqualTo(15);
    }

    @Test
    void shouldRefuseAStateOrSettingsThatMakeNoGame() {
        assertThatThrownBy(() -> new Guess().begin("seven"))
                .hasMessageContaining("07/5")
                .hasMessageContaining("'seven'");
        assertThatThrownBy(() -> new Guess().begin("7/0")).hasMessageContaining("turns must be 1 to 32: 0");
        assertThatThrownBy(() -> new GuessPrompts(5, 4)).hasMessage("digits must be 1 to 4 for the task guess: 5");
        assertThatThrownBy(() -> new GuessPrompts(1, 0)).hasMessage("turns must be 1 to 32 for the task guess: 0");
    }

    private StepResult guess(Episode game, int... digits) {
        StepResult result = null;
        for (int digit : digits) {
            result = response.policy(Symbols.digit(digit), game);
        }
        return result;
    }
}
