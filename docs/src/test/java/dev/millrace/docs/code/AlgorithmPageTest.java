package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.stages.BaselineMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class AlgorithmPageTest {
    private static final String PAGE = "how-to/algorithm.md";

    @Test
    void shouldBindTheExample() throws IOException {
        Algorithm algorithm = new ConfigLayers()
                .yaml(PageCode.block(PAGE, "yaml"), PAGE)
                .resolve()
                .algorithm();

        assertThat(((Gspo) algorithm.objective()).clipRatioHigh()).isEqualTo(0.001);
        assertThat(algorithm.advantage()).isEqualTo(Rloo.defaults());
        assertThat(algorithm.masks()).containsExactly(M2po.defaults(), SequenceMask.defaults());
    }

    @Test
    void shouldBindLoneRollouts() throws IOException {
        String section = Files.readString(Path.of(PAGE)).split("## One rollout per prompt\n")[1];
        MillraceConfig config = new ConfigLayers()
                .yaml(section.split("```yaml\n")[1].split("```")[0], PAGE)
                .resolve();

        assertThat(config.algorithm().advantage()).isEqualTo(ValueTracker.defaults());
        assertThat(config.admission().groupSize()).isEqualTo(1);
        assertThat(section).contains(String.format(Locale.ROOT, "%,d prompts or tasks", BaselineMemory.MAX_KEYS));
        for (String advantage : List.of(
                "value_tracker",
                "{kind: ema_baseline, key: prompt}",
                "{kind: ema_baseline, key: task}",
                "batch_mean")) {
            assertThat(section).contains("| `" + advantage + "` |");
            new ConfigLayers()
                    .yaml(
                            "admission: {group_size: 1}\ntopology: {groups: {min_size: 1}}\nalgorithm: {advantage: "
                                    + advantage + "}",
                            PAGE)
                    .resolve();
        }
    }

    @Test
    void shouldNameEveryAlgorithmThatIsNoPresetAndNoOther() throws IOException {
        String section = Files.readString(Path.of(PAGE)).split("## Names\n")[1].split("\n## ")[0];
        Set<String> named = new TreeSet<>();
        for (String line : section.split("\n")) {
            if (line.startsWith("| `")) {
                Matcher names = Pattern.compile("`([^`]+)`").matcher(line.substring(0, line.indexOf('|', 2)));
                while (names.find()) {
                    named.add(Algorithm.variant(names.group(1)).variant());
                }
            }
        }
        named.removeAll(NamedAlgorithms.presets());

        Set<String> all = new TreeSet<>(NamedAlgorithms.all().keySet());
        all.removeAll(NamedAlgorithms.presets());
        assertThat(named).isEqualTo(all);
    }
}
