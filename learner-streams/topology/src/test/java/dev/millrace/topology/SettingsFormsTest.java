package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.topology.TopologySettings.SettingsForms;
import dev.millrace.topology.TopologySettings.SettingsForms.FormChange;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class SettingsFormsTest {
    private static final SettingsForms FIRST = new SettingsForms(List.of(), Map.of());

    /** A key is renamed, its unit changes, and a key is added that earlier runs lack. */
    private static final SettingsForms SECOND = new SettingsForms(
            List.of(new FormChange(
                    "seconds for milliseconds",
                    values -> {
                        String ms = values.remove("a.wait_ms");
                        values.put("a.wait_s", CanonicalValues.number("a.wait_s", Double.parseDouble(ms) / 1000));
                        return values;
                    },
                    Set.of("a.new"))),
            Map.of());

    private static SortedMap<String, String> values(String... keysAndValues) {
        SortedMap<String, String> values = new TreeMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            values.put(keysAndValues[i], keysAndValues[i + 1]);
        }
        return values;
    }

    @Test
    void shouldHaveOneTextAndOneHashForOneSetOfSettings() {
        CanonicalSettings one = FIRST.write(values("b.x", "1", "a.y", "\"t = 2\""));
        CanonicalSettings other = FIRST.write(values("a.y", "\"t = 2\"", "b.x", "1"));
        assertThat(one.text()).isEqualTo("millrace settings, form 1\na.y = \"t = 2\"\nb.x = 1\n");
        assertThat(other.fingerprint()).isEqualTo(one.fingerprint());
        assertThat(one.fingerprint())
                .isEqualTo(new Fingerprint(1, "70fc761e87fcb33cfd7bf4f1b392cee26375c078178aca544e81d505fd3fc21e"))
                .isNotEqualTo(new CanonicalSettings(2, one.values()).fingerprint());
        assertThat(CanonicalSettings.parse(one.text())).isEqualTo(one);
    }

    @Test
    void shouldLeaveOutAKeyThatWasAddedLaterAtTheValueThatChangesNothing() {
        SettingsForms later = new SettingsForms(List.of(), Map.of("a.added", "0"));
        CanonicalSettings before = FIRST.write(values("a.x", "1"));
        CanonicalSettings neutral = later.write(values("a.x", "1", "a.added", "0"));
        CanonicalSettings used = later.write(values("a.x", "1", "a.added", "5"));

        assertThat(neutral.fingerprint()).isEqualTo(before.fingerprint());
        assertThat(later.differences(before, neutral)).isEmpty();
        assertThat(later.differences(before, used)).containsExactly(new SettingDifference("a.added", "0", "5"));
        assertThat(later.differences(used, neutral)).containsExactly(new SettingDifference("a.added", "5", "0"));

        SettingsForms ofElements = new SettingsForms(List.of(), Map.of("a.list[].added", "0"));
        CanonicalSettings element = FIRST.write(values("a.list[12].x", "1"));
        assertThat(ofElements
                        .write(values("a.list[12].x", "1", "a.list[12].added", "0"))
                        .fingerprint())
                .isEqualTo(element.fingerprint());
        assertThat(ofElements.differences(
                        element, ofElements.write(values("a.list[12].x", "1", "a.list[12].added", "5"))))
                .containsExactly(new SettingDifference("a.list[12].added", "0", "5"));
    }

    @Test
    void shouldCompareOfAnOlderFormWhatItKnew() {
        CanonicalSettings first = FIRST.write(values("a.wait_ms", "2000", "a.x", "1"));
        assertThat(SECOND.current()).isEqualTo(2);
        assertThat(SECOND.differences(first, SECOND.write(values("a.wait_s", "2", "a.x", "1", "a.new", "9"))))
                .isEmpty();
        assertThat(SECOND.differences(first, SECOND.write(values("a.wait_s", "3", "a.x", "1", "a.new", "9"))))
                .containsExactly(new SettingDifference("a.wait_s", "2", "3"));
        assertThat(SECOND.differences(first, SECOND.write(values("a.wait_s", "2", "a.new", "9"))))
                .containsExactly(new SettingDifference("a.x", "1", SettingDifference.ABSENT));
    }

    @Test
    void shouldCompareEverythingOfItsOwnForm() {
        assertThat(SECOND.differences(
                        SECOND.write(values("a.wait_s", "2", "a.new", "8")),
                        SECOND.write(values("a.wait_s", "2", "a.new", "9"))))
                .hasToString("[a.new was 8 and is 9 here]");
    }

    @Test
    void shouldRefuseAFormThatIsNotKnownYet() {
        CanonicalSettings second = SECOND.write(values("a.wait_s", "2"));
        assertThatThrownBy(() -> FIRST.differences(second, FIRST.write(values())))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("its settings are written in form 2, and this version knows form 1; use the Millrace"
                        + " version that created the run, or a newer one");
    }

    @Test
    void shouldRefuseATextThatIsNoneOfSettings() {
        assertThatThrownBy(() -> CanonicalSettings.parse("something\n"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("not a text of settings:");
        assertThatThrownBy(() -> CanonicalSettings.parse("millrace settings, form 1\na.x 5\n"))
                .hasMessageContaining("line 2 has no ' = ': a.x 5");
    }
}
