package dev.millrace.policy.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class SymbolTokenizerTest {
    private final SymbolTokenizer tokenizer = new SymbolTokenizer(List.of("0", "1", "<", "<eos>", "é"));

    @Test
    void shouldTakeTheLongestSymbolAtEachPlaceAndComeBack() {
        int[] tokens = tokenizer.encode("10<<eos>é0");
        assertThat(tokens).containsExactly(1, 0, 2, 3, 4, 0);
        assertThat(tokenizer.decode(tokens)).isEqualTo("10<<eos>é0");
        assertThat(tokenizer.encode("")).isEmpty();
        assertThat(tokenizer.id("<eos>")).isEqualTo(3);
        assertThat(tokenizer.vocabSize()).isEqualTo(5);
    }

    @Test
    void shouldKeepItsHashForever() {
        // sha-256 of "symbols", then per symbol its UTF-8 length as a big-endian int and its bytes
        assertThat(tokenizer.hash()).isEqualTo("f1618085ece03745fcaa79a6dfcc9a095e9acdcd6a67428222a070d967275d11");
        assertThat(new SymbolTokenizer(List.of("ab", "c")).hash())
                .isNotEqualTo(new SymbolTokenizer(List.of("a", "bc")).hash());
        assertThat(new SymbolTokenizer(List.of("a", "b")).hash())
                .isNotEqualTo(new SymbolTokenizer(List.of("b", "a")).hash());
    }

    @Test
    void shouldNameWhatItCannotMap() {
        assertThatThrownBy(() -> tokenizer.encode("01x"))
                .hasMessageStartingWith("no symbol begins at character 2 of '01x'");
        assertThatThrownBy(() -> tokenizer.decode(new int[] {0, 5}))
                .hasMessage("token 5 at 1 is outside the vocabulary of 5");
        assertThatThrownBy(() -> tokenizer.id("2")).hasMessageStartingWith("'2' is not among the 5 symbols");
    }

    @Test
    void shouldRefuseAListThatIsNoVocabulary() {
        assertThatThrownBy(() -> new SymbolTokenizer(List.of("a")))
                .hasMessage("a vocabulary needs at least 2 symbols: [a]");
        assertThatThrownBy(() -> new SymbolTokenizer(List.of("a", ""))).hasMessage("symbol 1 is empty");
        assertThatThrownBy(() -> new SymbolTokenizer(List.of("a", "b", "a")))
                .hasMessage("symbol 'a' is in the list twice, first at 0");
    }
}
