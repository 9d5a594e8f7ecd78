package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CanonicalValuesTest {
    enum Order {
        FIRST_COME
    }

    record Part(int maxCount, Order order) {}

    record OtherPart(Order order, int maxCount) {}

    sealed interface Rule {
        record ClippedConfig(double bound) implements Rule {}

        record None() implements Rule {}
    }

    record Ruled(Rule rule) {}

    record Wide(
            long wide,
            boolean flag,
            String text,
            List<Long> numbers,
            List<String> texts,
            Map<String, String> map,
            Optional<Part> part,
            String absent) {}

    record One(double value) {}

    record Odd(Object value) {}

    @Test
    void shouldWriteEveryKindOfValue() {
        Map<String, String> map = new LinkedHashMap<>();
        map.put("b.c", "2");
        map.put("a b", "1");
        assertThat(CanonicalValues.of(
                        "x",
                        new Wide(
                                -5,
                                true,
                                "a \"b\"\n\u00fc",
                                List.of(3L, 1L),
                                List.of("q"),
                                map,
                                Optional.of(new Part(7, Order.FIRST_COME)),
                                null)))
                .isEqualTo(Map.of(
                        "x.wide", "-5",
                        "x.flag", "true",
                        "x.text", "\"a \\\"b\\\"\\u000a\\u00fc\"",
                        "x.numbers", "[3, 1]",
                        "x.texts", "[\"q\"]",
                        "x.map.b.c", "\"2\"",
                        "x.map.\"a b\"", "\"1\"",
                        "x.part.max_count", "7",
                        "x.part.order", "first_come"));
    }

    @Test
    void shouldDependNeitherOnTheNameOfARecordNorOnTheOrderOfItsComponents() {
        assertThat(CanonicalValues.of("x", new OtherPart(Order.FIRST_COME, 7)))
                .isEqualTo(CanonicalValues.of("x", new Part(7, Order.FIRST_COME)))
                .hasSize(2);
    }

    @Test
    void shouldNameTheKindOfAChoiceByItsWordInTheConfiguration() {
        assertThat(CanonicalValues.of("x", new Ruled(new Rule.ClippedConfig(0.2))))
                .isEqualTo(Map.of("x.rule.kind", "clipped", "x.rule.bound", "0.2"));
        assertThat(CanonicalValues.of("x", new Ruled(new Rule.None()))).isEqualTo(Map.of("x.rule.kind", "none"));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "256, 256",
        "2.0, 2",
        "0.04, 0.04",
        "-0.5, -0.5",
        "1e18, 1000000000000000000",
        "0.1, 0.1",
        "0.30000000000000004, 0.30000000000000004",
        "2e-3, 0.002",
        "5.6843418860808015e-14, 0.000000000000056843418860808015", // differs in Double.toString from Java 19 on
        // Java 19
        "9007199254740993, 9007199254740992"
    })
    void shouldRoundANumberToTheFewestDigitsAtWhichItReadsBack(double value, String text) {
        assertThat(CanonicalValues.number("key", value)).isEqualTo(text);
        assertThat(Double.parseDouble(text)).isEqualTo(value);
    }

    @Test
    void shouldWriteTheSameInEveryLocale() {
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.forLanguageTag("tr-TR-u-nu-arab"));
            assertThat(CanonicalValues.of("x", new Ruled(new Rule.ClippedConfig(1234.5))))
                    .isEqualTo(Map.of("x.rule.kind", "clipped", "x.rule.bound", "1234.5"));
            assertThat(CanonicalValues.of("x", new Part(1, Order.FIRST_COME)))
                    .isEqualTo(Map.of("x.max_count", "1", "x.order", "first_come"));
        } finally {
            Locale.setDefault(before);
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0})
    void shouldRefuseANumberThatHasNoOneText(double value) {
        assertThatThrownBy(() -> CanonicalValues.of("x", new One(value)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("x.value must");
    }

    @Test
    void shouldRefuseAValueOfATypeThatNoConfigurationHas() {
        assertThatThrownBy(() -> CanonicalValues.of("x", new Odd('c')))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("x.value has a type without canonical form: java.lang.Character");
    }
}
