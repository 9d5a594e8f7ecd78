package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class TokenTextsTest {
    private static final Tokenizer TOKENIZER = ByteTokenizer.open();

    @Test
    void givesTheTokenThatCompletesACharacterAllOfIt() {
        int[] tokens = TOKENIZER.encode("a世b");

        assertThat(tokens).hasSize(5);
        assertThat(TokenTexts.of(tokens, TOKENIZER)).containsExactly("a", "", "", "世", "b");
    }

    @Test
    void joinsToTheTextHoweverTokensCome() {
        String text = "Grüße, the 世界 👩‍🚀!";
        int[] tokens = TOKENIZER.encode(text);
        TokenTexts texts = new TokenTexts(TOKENIZER);
        List<String> pieces = new ArrayList<>();
        for (int from = 0; from < tokens.length; from += 3) {
            pieces.addAll(List.of(texts.next(Arrays.copyOfRange(tokens, from, Math.min(from + 3, tokens.length)))));
        }

        assertThat(String.join("", pieces)).isEqualTo(text);
        assertThat(pieces).containsExactly(TokenTexts.of(tokens, TOKENIZER));
    }

    @Test
    void givesTheRestOfATextThatEndsInTheMiddleOfACharacter() {
        int[] tokens = Arrays.copyOf(TOKENIZER.encode("a世"), 3);

        assertThat(String.join("", TokenTexts.of(tokens, TOKENIZER))).isEqualTo(TOKENIZER.decode(tokens));
    }
}
