package dev.millrace.generator.environment.text;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import java.util.List;
import org.junit.jupiter.api.Test;

class StopRuleTest {
    private static final Tokenizer TINY = new TokenizerDirectory("../policy/src/test/resources/tiny").open();

    private static boolean endsWithLastOf(String stop, int... tokens) {
        return new StopRule(new int[0], List.of(stop), TINY).endsAt(new Written(tokens));
    }

    @Test
    void shouldEndAtASpecialTokenThatIsNamedAsAText() {
        int[] text = TINY.encode("dog");
        int dog = text[text.length - 1];
        assertThat(TINY.text(new int[] {dog, 0})).doesNotContain("<s>");
        assertThat(endsWithLastOf("<s>", dog, 0)).isTrue();
        assertThat(endsWithLastOf("<s>", dog, dog)).isFalse();
    }

    @Test
    void shouldEndWhereATextIsWholeBesideTokensThatAreNone() {
        int[] text = TINY.encode("the dog");
        int[] parted = {text[text.length - 2], 0, text[text.length - 1]};
        assertThat(endsWithLastOf("the dog", parted)).isTrue();
    }
}
