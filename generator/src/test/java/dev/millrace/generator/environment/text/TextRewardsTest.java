package dev.millrace.generator.environment.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvFileSource;

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
        assertThat(earned(exact, "1.50", "{\"answer\": 1.50}")).isEqualTo(1);
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
        assertThat(earned(numeric, "0.12345678901234567891", "{\"answer\": 0.12345678901234567891}"))
                .isEqualTo(1);
        assertThat(earned(numeric, "0.12345678901234568", "{\"answer\": 0.12345678901234567891}"))
                .isZero();
        assertThat(earned(new NumericReward(0.01), "3.14", "{\"answer\": 3.1416}"))
                .isEqualTo(1);
        assertThatThrownBy(() -> numeric.requireJudgeable("{\"answer\": \"none\"}"))
                .hasMessageContaining("which has none that it reads: 'none'");
        assertThatThrownBy(() -> new NumericReward(Double.NaN)).hasMessageStartingWith("tolerance must be at least 0");
    }

    /** The table of {@code verifiers.py}. */
    @ParameterizedTest
    @CsvFileSource(resources = "/verifiers.tsv", delimiter = '\t', quoteCharacter = '\0', numLinesToSkip = 1)
    void shouldJudgeAsTheVerifiersOfTheFieldOrSayWhyNot(
            String answer,
            @Nullable String response,
            double reward,
            double mathVerify,
            double gsm8k,
            double mathReward,
            @Nullable String reason) {
        String state =
                JsonNodeFactory.instance.objectNode().put("answer", answer).toString();
        NumericReward.defaults().requireJudgeable(state);

        assertThat(earned(NumericReward.defaults(), response == null ? "" : response, state))
                .isEqualTo(reward);
        assertThat(reason != null).as("a reason is given").isEqualTo(reward != mathVerify || mathReward > reward);
        assertThat(mathReward == 0 || response != null && response.contains("\\boxed"))
                .as("math_reward pays boxes only")
                .isTrue();
        assertThat(gsm8k <= reward || response != null && response.matches(".*(\u2212|\\\\sqrt|\\\\pi).*"))
                .as("what gsm8k pays is paid, unless it does not know the minus or the root")
                .isTrue();
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

    @Test
    void shouldRewardWhatAnExpressionMakesOfResponseAndRow() {
        assertThat(earned(new ExpressionReward("response.count('?') / 2"), "who? me", "{}"))
                .isEqualTo(0.5);
        assertThat(earned(new ExpressionReward("answer in response"), "it is Paris.", "{\"answer\": \"Paris\"}"))
                .isEqualTo(1);
        ExpressionReward graded =
                new ExpressionReward("(1 if response|trim|lower == answer|lower else 0) * row.level - 0.01 * tokens");
        assertThat(earned(graded, " paris", "{\"answer\": \"Paris\", \"level\": 3}"))
                .isCloseTo(2.94, within(1e-12));
        assertThat(earned(graded, "rome", "{\"answer\": \"Paris\", \"level\": 3}"))
                .isCloseTo(-0.04, within(1e-12));
        assertThat(earned(new ExpressionReward("(response|length) / row.get('most', 4)"), "abcdef", "{}"))
                .isEqualTo(1.5);
        assertThat(earned(new ExpressionReward("prompt|length"), "x", "{}")).isEqualTo(1);
    }

    @Test
    void shouldRefuseAnExpressionThatIsNoneOrThatCannotJudgeARow() {
        assertThatThrownBy(() -> new ExpressionReward("1 +"))
                .hasMessageStartingWith("expression is not an expression: '1 +'");
        assertThatThrownBy(() -> new ExpressionReward("1 ".repeat(1001)))
                .hasMessageStartingWith("expression must have 1 to 2000 characters");
        assertThatThrownBy(() -> ExpressionReward.defaults().requireJudgeable("{}"))
                .hasMessageStartingWith("reward expression has no expression; give one");
        refused("row.level + 1", "{}", "there is no \"level\" in the row");
        assertThatThrownBy(() -> new ExpressionReward("answr in response"))
                .hasMessage(
                        "expression 'answr in response' names answr, and there are answer, prompt, response, row, tokens");
        refused("answer in response", "{}", "fails: there is no answer");
        refused("response", "{}", "gives the text '' and must give a number");
        refused("tokens / 0", "{}", "");
        refused("response.getClass().getName()|length", "{}", "getClass");
        new ExpressionReward("1 / (tokens + 1)").requireJudgeable("{}");
    }

    @Test
    void shouldRewardNothingAndSaySoWhereAnExpressionFailsOnAResponse() {
        VerifiedReward given = reward(new ExpressionReward("1 / (tokens - 3)"), "abc", "{}");
        assertThat(given.reward()).isZero();
        assertThat(given.components()).containsEntry("failed", 1.0);
        VerifiedReward grown = reward(
                new ExpressionReward("response.replace('a', response).replace('a', response)|length"),
                "a".repeat(2000),
                "{}");
        assertThat(grown.reward()).isZero();
        assertThat(grown.components()).containsEntry("failed", 1.0);
        assertThat(reward(new ExpressionReward("tokens"), "abc", "{}").components())
                .containsEntry("failed", 0.0);
    }

    private static void refused(String expression, String state, String message) {
        assertThatThrownBy(() -> new ExpressionReward(expression).requireJudgeable(state))
                .as(expression)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("of an empty response reward.expression '" + expression + "'")
                .hasMessageContaining(message);
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
                CHARACTERS,
                List.of(),
                ""));
    }
}
