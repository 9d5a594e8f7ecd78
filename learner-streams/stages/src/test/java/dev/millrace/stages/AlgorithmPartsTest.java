package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.WeightStage;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class AlgorithmPartsTest {
    private static final List<Kind> KINDS = new AlgorithmParts().kinds();

    @Test
    void shouldBringSomethingThroughEveryPointOfTheAlgorithm() {
        for (ExtensionPoint point : new AlgorithmParts().extensionPoints()) {
            assertThat(Catalogue.current().kinds(point.type())).as(point.name()).isNotEmpty();
        }
    }

    @Test
    void shouldReportEachStageUnderTheNameByWhichItIsChosen() {
        Map<String, String> otherwise = new TreeMap<>();
        for (Kind kind : KINDS) {
            // weights are reported under the name that they have in the literature: token_tis
            if (kind.defaults() instanceof Stage stage
                    && !(stage instanceof WeightStage)
                    && !stage.name().equals(kind.name())) {
                otherwise.put(kind.name(), stage.name());
            }
        }
        assertThat(otherwise).isEmpty();
    }

    @Test
    void shouldSayOfEveryKindWhatItIsInOneSentenceOrLess() {
        assertThat(KINDS)
                .hasSizeGreaterThan(40)
                .allSatisfy(kind -> assertThat(kind.meaning())
                        .as(kind.name())
                        .hasSizeBetween(10, 160)
                        .doesNotContain(". "));
    }
}
