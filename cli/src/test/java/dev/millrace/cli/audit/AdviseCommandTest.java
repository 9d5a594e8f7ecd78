package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.cli.audit.AdviseCommand.Advice;
import dev.millrace.cli.audit.AdviseCommand.Adviser;
import dev.millrace.cli.audit.AdviseCommand.Verdict;
import dev.millrace.runtime.config.ConfigLayers;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

class AdviseCommandTest {
    private static final String MOE =
            "model.traits.experts.count=4 model.traits.experts.per_token=2 model.traits.experts.width=64";

    private static List<Advice> advice(String settings) {
        ConfigLayers layers = new ConfigLayers();
        for (String setting : settings.split(" ")) {
            if (!setting.isEmpty()) {
                layers.set(setting);
            }
        }
        return new Adviser(layers.resolve()).advice();
    }

    private static Advice about(String subject, String settings) {
        return advice(settings).stream()
                .filter(advice -> advice.subject().equals(subject))
                .findFirst()
                .orElseThrow(() -> new AssertionError("nothing about " + subject + " in " + advice(settings)));
    }

    @Test
    void findsNothingMissingInTheDefaultRun() {
        assertThat(advice("")).extracting(Advice::verdict).containsOnly(Verdict.FINE);
        assertThat(about("staleness", "").sentence()).contains("algorithm.weights.kind=token corrects for it");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "staleness | algorithm.variant=none | NEEDED | algorithm.weights.kind=token",
                "staleness | algorithm.variant=none admission.eta=0 | FINE | ''",
                "staleness | algorithm.variant=decoupled_geo_rs | FINE | ''",
                "staleness | algorithm.variant=gspo | FINE | ''",
                "staleness | algorithm.variant=token_tis algorithm.mode=recorded | CONSIDER | algorithm.mode=decoupled",
                "staleness | algorithm.variant=token_tis admission.eta=9 algorithm.staleness.max_versions=9 | CONSIDER | admission.eta=8",
                "engine | algorithm.variant=none generator.precision=bf16 | NEEDED | doctor mismatch",
                "engine | algorithm.variant=token_tis generator.precision=int8 | FINE | ''",
                "sampling | admission.sampling.top_p=0.9 | NEEDED | keep_sampling_mask=true",
                "sampling | admission.sampling.top_p=0.9 admission.sampling.keep_sampling_mask=true | FINE | ''",
                "rejection | algorithm.variant=token_tis algorithm.rejection.rollout_rs=seq_sum_k1 algorithm.rejection.rollout_rs_threshold=0.5_2.0 | CONSIDER | seq_mean_k1",
                "objective | algorithm.variant=decoupled_ppo algorithm.minibatches=1 algorithm.epochs=1 | IDLE | ''",
                "updates | algorithm.variant=decoupled_ppo algorithm.minibatches=2 | FINE | ''",
                "ratios | admission.eta=0 algorithm.variant=token_tis | IDLE | leave them out",
                "turns | algorithm.variant=token_tis algorithm.weights.kind=turn_geometric | IDLE | geometric_sequence",
                "turns | task.kind=guess algorithm.variant=sequence_tis | CONSIDER | turn_geometric",
                "turns | task.kind=guess algorithm.variant=token_tis | FINE | ''",
            })
    void judgesEachSourceByItself(String subject, String settings, Verdict verdict, String key) {
        Advice advice = about(subject, settings);
        assertThat(advice.verdict()).as(advice.toString()).isEqualTo(verdict);
        assertThat(advice.key()).contains(key);
    }

    @ParameterizedTest
    @CsvSource({
        "1,1,FINE,''",
        "2,1,NEEDED,routing_replay=learner",
        "2,2,NEEDED,routing_replay=generator",
    })
    void asksForReplayedRoutesByTheNumberOfUpdates(int minibatches, int epochs, Verdict verdict, String key) {
        Advice advice = about(
                "experts",
                MOE + " admission.eta=0 algorithm.variant=decoupled_ppo algorithm.minibatches=" + minibatches
                        + " algorithm.epochs=" + epochs);
        assertThat(advice.verdict()).isEqualTo(verdict);
        assertThat(advice.key()).contains(key);
        assertThat(about("experts", MOE + " algorithm.variant=token_tis").verdict())
                .as("stale, and one update")
                .isEqualTo(Verdict.CONSIDER);
    }

    @Test
    void printsTheWorstFirstAndExitsWithFour() throws IOException {
        JsonNode missing = run(4, "algorithm.variant=none", "generator.precision=bf16");
        assertThat(missing.path("complete").asBoolean()).isFalse();
        assertThat(missing.at("/advice/0/verdict").asText()).isEqualTo("needed");
        assertThat(run(0, "algorithm.variant=token_tis").path("complete").asBoolean())
                .isTrue();
    }

    private static JsonNode run(int status, String... settings) throws IOException {
        StringWriter out = new StringWriter();
        CommandLine line = Main.commandLine();
        line.setOut(new PrintWriter(out));
        String[] words = new String[3 + 2 * settings.length];
        words[0] = "doctor";
        words[1] = "advise";
        words[2] = "--json";
        for (int i = 0; i < settings.length; i++) {
            words[3 + 2 * i] = "--set";
            words[4 + 2 * i] = settings[i];
        }
        assertThat(line.execute(words)).isEqualTo(status);
        return new ObjectMapper().readTree(out.toString());
    }
}
