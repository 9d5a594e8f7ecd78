package dev.millrace.generator.environment.text;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.environment.text.NumericReward.WrittenNumber;
import java.math.BigDecimal;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvFileSource;

class WrittenNumberTest {
    @ParameterizedTest
    @CsvFileSource(resources = "/numbers.txt", delimiter = '|', quoteCharacter = '\0')
    void shouldReadTheLastNumber(String text, String value) {
        Optional<WrittenNumber> read = WrittenNumber.last(text);
        if (value.equals("none")) {
            assertThat(read).isEmpty();
            return;
        }
        String[] parts = value.split("/", -1);
        WrittenNumber wanted = new WrittenNumber(
                new BigDecimal(parts[0]), parts.length == 1 ? BigDecimal.ONE : new BigDecimal(parts[1]));
        assertThat(read)
                .hasValueSatisfying(number ->
                        assertThat(number.isWithin(0, wanted)).as("%s", number).isTrue());
    }

    @Test
    void shouldCompareWithoutRounding() {
        WrittenNumber third = WrittenNumber.last("1/3").orElseThrow();
        assertThat(third.isWithin(0, WrittenNumber.last("0.3333333333333333").orElseThrow()))
                .isFalse();
        assertThat(third.isWithin(1e-3, WrittenNumber.last("0.333").orElseThrow()))
                .isTrue();
        assertThat(third.isWithin(0, WrittenNumber.last("\\frac{-2}{-6}").orElseThrow()))
                .isTrue();
        assertThat(WrittenNumber.last("123456789012345678901234567891")
                        .orElseThrow()
                        .isWithin(
                                0,
                                WrittenNumber.last("123456789012345678901234567890")
                                        .orElseThrow()))
                .isFalse();
    }

    @Test
    void shouldReadLongTextsInLinearTime() {
        assertThat(WrittenNumber.last("9".repeat(1_000_000))).isEmpty();
        assertThat(WrittenNumber.last("1,234".repeat(200_000))).isPresent();
        assertThat(WrittenNumber.last("\\frac{".repeat(100_000) + "7")).isPresent();
        assertThat(WrittenNumber.last("\\frac3{".repeat(100_000) + "7")).isPresent();
        assertThat(WrittenNumber.last("- ".repeat(500_000) + "7")).isPresent();
    }
}
