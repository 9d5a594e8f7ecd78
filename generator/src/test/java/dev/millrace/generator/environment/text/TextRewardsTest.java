package dev.millrace.generator.environment.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TextRewardsTest {
    /** One token a character. */
    private static final Tokenizer CHARACTERS = new Tokenizer() {
        @Override
        public int vocabSize() {
            return 1 << 16;
        }

        @Override
        public int[] encode(String text) {
            return text.chars().toArray();
        }

        @Override
        public String decode(int[] tokens) {
            return new String(tokens, 0, tokens.length);
        }

        @Override
        public String hash() {
            return "characters";
        }
    };

    @Test
    void shouldRewardTheAnswerLetterByLetter() {
        RewardFunction exact = ExactReward.defaults();
        assertThat(earned(exact, " Paris\n", "{\"answer\": \"Paris\"}")).isEqualTo(1);
        assertThat(earned(exact, "paris", "{\"answer\": \"Paris\"}")).isZero();
        assertThat(earned(new ExactReward(false), "paris", "{\"answer\": \"Paris\"}"))
                .isEqualTo(1);
        assertThat(earned(exact, "7", "{\"answer\": 7}")).isEqualTo(1);
        assertThatThrownBy(() -> exact.requireJudgeable("{\"answer\": null}"))
                .hasMessage("reward exact compares with the row's \"answer\", which must be a text or a number: null");
    }

    @Test
    void shouldRewardTheLastNumber() {
        RewardFunction numeric = NumericReward.defaults();
        assertThat(earned(numeric, "3 + 4 = 7.", "{\"answer\": 7}")).isEqualTo(1);
        assertThat(earned(numeric, "so 1,234.50", "{\"answer\": \"1234.5\"}")).isEqualTo(1);
        assertThat(earned(numeric, "7, or rather 8", "{\"answer\": 7}")).isZero();
        assertThat(earned(numeric, "I do not know", "{\"answer\": 7}")).isZero();
        assertThat(earned(numeric, "-2e3", "{\"answer\": \"work: 5 - 2005 = -2000\"}"))
                .isEqualTo(1);
        assertThat(earned(new NumericReward(0.01), "3.14", "{\"answer\": 3.1416}"))
                .isEqualTo(1);
        assertThatThrownBy(() -> numeric.requireJudgeable("{\"answer\": \"none\"}"))
                .hasMessageContaining("which has none: 'none'");
        assertThatThrownBy(() -> new NumericReward(Double.NaN)).hasMessageStartingWith("tolerance must be at least 0");
    }

    @Test
    void shouldRewardTheShareOfTheWantedMatches() {
        RewardFunction questions = new RegexReward("\\?", 2);
        assertThat(earned(questions, "who", "{}")).isZero();
        assertThat(earned(questions, "who?", "{}")).isEqualTo(0.5);
        assertThat(earned(questions, "who? me? yes?", "{}")).isEqualTo(1);
        assertThatThrownBy(() -> new RegexReward("(", 1))
                .hasMessageStartingWith("pattern must be a regular expression: '('");
        assertThatThrownBy(() -> new RegexReward("a", 0)).hasMessage("count must be at least 1: 0");
    }

    @Test
    void shouldGiveUpOnAPatternThatTriesEveryWay() {
        VerifiedReward given = reward(new RegexReward("(a*)(a*)(a*)(a*)(a*)(a*)(a*)(a*)c", 1), "a".repeat(200), "{}");
        assertThat(given.reward()).isZero();
        assertThat(given.components()).containsEntry("gave_up", 1.0);
    }

    private static double earned(RewardFunction function, String response, String state) {
        return reward(function, response, state).reward();
    }

    private static VerifiedReward reward(RewardFunction function, String response, String state) {
        return function.reward(new FinishedResponse(
                new int[] {1},
                state,
                new Written(CHARACTERS.encode(response)),
                new VerifiedReward(0, Map.of()),
                CHARACTERS));
    }
}
