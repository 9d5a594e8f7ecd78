package dev.millrace.cli.correct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class CorrectCommandTest {
    /** Ratios 2.5 and 0.5 (k3 0.58 and 0.19), and one context token without a log-prob. */
    private static final String OFF_POLICY = """
        {"id":"a","mask":[1,0,1],"behavior_log_probs":[-2.0,null,-1.0],"proximal_log_probs":[-1.0837093,null,-1.6931472]}""";

    private static final String ON_POLICY = """
        {"id":"b","mask":[1],"behavior_log_probs":[-0.5],"proximal_log_probs":[-0.5]}""";

    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(List<String> lines, String... options) throws IOException {
        Files.write(folder.resolve("batch.jsonl"), lines);
        List<String> arguments = new ArrayList<>(List.of(
                "correct",
                "--in",
                folder.resolve("batch.jsonl").toString(),
                "--out",
                folder.resolve("corrected.jsonl").toString()));
        arguments.addAll(List.of(options));
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(arguments.toArray(String[]::new));
    }

    private List<JsonNode> corrected() throws IOException {
        List<JsonNode> nodes = new ArrayList<>();
        for (String line : Files.readAllLines(folder.resolve("corrected.jsonl"))) {
            nodes.add(new ObjectMapper().readTree(line));
        }
        return nodes;
    }

    @Test
    void shouldWriteWeightsAndMaskOfEverySequenceAndTheMetricsOfAll() throws IOException {
        int exit = run(
                List.of(OFF_POLICY, ON_POLICY),
                "--preset",
                "decoupled_k3_rs_token_tis",
                "--metrics",
                folder.resolve("metrics.json").toString());

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(corrected()).hasSize(2);
        JsonNode a = corrected().get(0);
        assertThat(a.get("id").asText()).isEqualTo("a");
        assertThat(a.get("mask").toString()).isEqualTo("[0,0,0]");
        assertThat(a.get("rejected_tokens").asInt()).isEqualTo(2);
        assertThat(a.get("weights").get(0).asDouble()).isEqualTo(2.0);
        assertThat(a.get("weights").get(1).asDouble()).isZero();
        assertThat(a.get("weights").get(2).asDouble()).isCloseTo(0.5, org.assertj.core.api.Assertions.within(1e-6));
        assertThat(corrected().get(1).toString())
                .isEqualTo("{\"id\":\"b\",\"mask\":[1],\"rejected_tokens\":0,\"weights\":[1.0]}");
        JsonNode metrics =
                new ObjectMapper().readTree(folder.resolve("metrics.json").toFile());
        assertThat(metrics.get("rollout_corr/rollout_rs_masked_fraction").asDouble())
                .isEqualTo(2 / 3.0);
        assertThat(out.toString())
                .contains("rollout_corr/kl ")
                .contains(
                        "2 sequences, 3 trained tokens, ratio proximal/behavior: 2 tokens rejected in 1 sequences; 0 lines left out");
    }

    @Test
    void shouldReportBadLinesWithTheirNumberAndCorrectTheRest() throws IOException {
        int exit = run(
                List.of(
                        ON_POLICY,
                        "{\"id\":\"c\"",
                        "",
                        "[1]",
                        "{\"id\":\"d\",\"mask\":[1,2],\"behavior_log_probs\":[0,0],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"e\",\"mask\":[1,1],\"behavior_log_probs\":[0],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"f\",\"mask\":[1,0],\"behavior_log_probs\":[null,0],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"g\",\"mask\":[1],\"behavior_log_prob\":[0],\"proximal_log_probs\":[0]}",
                        "{\"id\":\"h\",\"mask\":[1],\"proximal_log_probs\":[0]}",
                        "{\"id\":\"b\",\"mask\":[1],\"behavior_log_probs\":[0],\"proximal_log_probs\":[0]}",
                        "{\"id\":\"i\",\"mask\":[1],\"behavior_log_probs\":[1e300],\"proximal_log_probs\":[0]}",
                        "{\"id\":7,\"mask\":[1],\"behavior_log_probs\":[0],\"proximal_log_probs\":[0]}",
                        OFF_POLICY),
                "--preset",
                "decoupled_token_is");

        assertThat(exit).isEqualTo(1);
        assertThat(corrected()).extracting(line -> line.get("id").asText()).containsExactly("b", "a");
        assertThat(err.toString())
                .contains(":2: not JSON")
                .contains(":4: a line must be a JSON object")
                .contains(":5: mask[1] must be 0 or 1: 2")
                .contains(":6: behavior_log_probs has 1 elements, mask has 2")
                .contains(":7: behavior_log_probs[0] must be a finite number: null")
                .contains(":8: unknown field behavior_log_prob; did you mean behavior_log_probs?")
                .contains(":9: behavior_log_probs is missing; the ratio proximal/behavior needs it")
                .contains(":10: id b is already on line 1")
                .contains(":11: behavior_log_probs[0] must be a finite number: 1.0E300")
                .contains(":12: id must be a text: 7")
                .doesNotContain(":3:");
        assertThat(out.toString()).contains("10 lines left out");
    }

    @Test
    void shouldTakeCurrentLogProbsInBypassMode() throws IOException {
        int exit = run(
                List.of("{\"id\":\"a\",\"mask\":[1],\"behavior_log_probs\":[-1.0],\"current_log_probs\":[-1.0]}"),
                "--preset",
                "bypass_pg_is");

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(out.toString()).contains("ratio current/behavior");
    }

    @Test
    void shouldTakeTheRatioAndParametersOneAsksFor() throws IOException {
        int exit = run(
                List.of(OFF_POLICY.replace("proximal_log_probs", "old_log_probs")),
                "--preset",
                "decoupled_k3_rs_token_tis",
                "--ratio",
                "engine_mismatch",
                "--set",
                "rs_threshold=0.5",
                "--set",
                "is_threshold=1.5");

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(corrected().get(0).get("mask").toString()).isEqualTo("[1,0,1]");
        assertThat(corrected().get(0).get("weights").get(0).asDouble()).isEqualTo(1.5);
    }

    @Test
    void shouldLeaveWeightsOutWhereThePresetMakesNone() throws IOException {
        run(List.of(ON_POLICY), "--preset", "decoupled_k3_rs");

        assertThat(corrected().get(0).has("weights")).isFalse();
    }

    @Test
    void shouldRefuseUnknownPresetsAndParametersAsMistakes() throws IOException {
        assertThat(run(List.of(ON_POLICY), "--preset", "decoupled")).isEqualTo(2);
        assertThat(err.toString()).contains("unknown preset 'decoupled'; known: decoupled_token_is");
        assertThat(run(List.of(ON_POLICY), "--preset", "disabled", "--set", "threshold=2"))
                .isEqualTo(2);
        assertThat(err.toString()).contains("preset disabled has no parameter threshold");
        assertThat(run(List.of(ON_POLICY), "--preset", "decoupled_token_is", "--set", "threshold=0.5"))
                .isEqualTo(2);
        assertThat(err.toString()).contains("rollout_is_threshold=0.5");
        assertThat(folder.resolve("corrected.jsonl")).doesNotExist();
    }

    @Test
    void shouldSayWhyThereIsNothingToCorrect() throws IOException {
        assertThat(run(List.of("{}"), "--preset", "disabled")).isEqualTo(1);
        assertThat(err.toString()).contains("has no line to correct");
        assertThat(run(List.of(OFF_POLICY.replace("[1,0,1]", "[0,0,0]")), "--preset", "disabled"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("every mask is 0");
        assertThat(run(List.of(ON_POLICY), "--preset", "disabled", "--in", "nowhere.jsonl"))
                .isNotZero();
        assertThat(folder.resolve("corrected.jsonl")).doesNotExist();
    }

    @Test
    void shouldRefuseOneFileForTwoPurposesUnderWhateverName() throws IOException {
        Path batch = folder.resolve("batch.jsonl");
        Path link = Files.createSymbolicLink(folder.resolve("link.jsonl"), batch);
        Path folderLink = Files.createSymbolicLink(folder.resolve("here"), folder);
        for (Path same : List.of(batch, link, folder.resolve("x/../batch.jsonl"), folderLink.resolve("batch.jsonl"))) {
            Files.createDirectories(folder.resolve("x"));
            assertThat(run(List.of(ON_POLICY), "--preset", "disabled", "--metrics", same.toString()))
                    .isEqualTo(2);
            assertThat(execute("--preset", "disabled", "--in", batch.toString(), "--out", same.toString()))
                    .isEqualTo(2);
            assertThat(Files.readAllLines(batch)).containsExactly(ON_POLICY);
        }
        String unwritten = folderLink.resolve("corrected.jsonl").toString();
        assertThat(run(List.of(ON_POLICY), "--preset", "disabled", "--metrics", unwritten))
                .isEqualTo(2);
        assertThat(err.toString())
                .contains("--in " + batch + " and --out " + link + " are one file")
                .contains("give --metrics another name");
        assertThat(folder.resolve("corrected.jsonl")).doesNotExist();
    }

    private int execute(String... arguments) {
        List<String> all = new ArrayList<>(List.of("correct"));
        all.addAll(List.of(arguments));
        return Main.commandLine()
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(all.toArray(String[]::new));
    }

    @Test
    void shouldRefuseWhatIsNoLogProbWithRowKeyAndValue() throws IOException {
        int exit = run(
                List.of(
                        "{\"id\":\"p\",\"mask\":[1,1],\"behavior_log_probs\":[-1,0.25],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"n\",\"mask\":[1],\"behavior_log_probs\":[0],\"proximal_log_probs\":[NaN]}",
                        "{\"id\":\"i\",\"mask\":[1],\"behavior_log_probs\":[-Infinity],\"proximal_log_probs\":[0]}",
                        "{\"id\":\"c\",\"mask\":[0,1],\"behavior_log_probs\":[NaN,0],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"f\",\"mask\":[0,1],\"behavior_log_probs\":[1.0,0],\"proximal_log_probs\":[0,0]}",
                        "{\"id\":\"s\",\"mask\":[1,1],\"behavior_log_probs\":[0,-9999.0],\"proximal_log_probs\":[0,0]}"),
                "--preset",
                "disabled");

        assertThat(exit).isEqualTo(1);
        assertThat(err.toString())
                .contains(
                        ":1: behavior_log_probs[1] must be at most 0, since it is the natural log of a probability: 0.25")
                .contains(":2: proximal_log_probs[0] must be a finite number: NaN")
                .contains(":3: behavior_log_probs[0] must be a finite number: -Infinity")
                .contains(":4: behavior_log_probs[0] must be a finite number or null: NaN")
                .contains(
                        ":6: behavior_log_probs[1] must be at least -350.0, since less is an engine's stand-in for minus infinity:"
                                + " -9999.0; set mask[1] to 0, or remove the line")
                .doesNotContain(":5:");
    }

    @Test
    void shouldComputeEveryMetricOfTheLeastLogProb() throws IOException {
        Path metrics = folder.resolve("metrics.json");
        int exit = run(
                List.of(
                        "{\"id\":\"a\",\"mask\":[1,1],\"behavior_log_probs\":[-350,0],\"proximal_log_probs\":[0,-350]}"),
                "--preset",
                "decoupled_k3_rs_token_tis",
                "--metrics",
                metrics.toString());

        assertThat(exit).isZero();
        JsonNode written = new ObjectMapper().readTree(metrics.toFile());
        assertThat(written).isNotEmpty().allMatch(JsonNode::isNumber);
        assertThat(written.get("rollout_corr/k3_kl").asDouble()).isBetween(1e151, 1e153);
        assertThat(out.toString())
                .doesNotContain("not in " + metrics)
                .contains("compare proximal with behavior: proximal_log_probs - behavior_log_probs");
    }

    @Test
    void shouldNameTheStageThatCannotDecideAboutTheFile() throws IOException {
        String facts = "\"mask\":[1],\"group\":\"g\",\"proximal_log_probs\":[-0.5],\"behavior_log_probs\":[-0.5],";
        int exit = run(
                List.of("{\"id\":\"a\"," + facts + "\"reward\":1}", "{\"id\":\"b\"," + facts + "\"reward\":0}"),
                "--algorithm",
                "default",
                "--set",
                "advantage.kind=pass_at_k");

        assertThat(exit).isEqualTo(1);
        assertThat(err.toString())
                .contains("does not fit the algorithm: stage pass_at_k cannot decide about the batch: pass@k needs"
                        + " groups of at"
                        + " least k sequences: group=0, sequences=2, k=4");
    }

    @Test
    void shouldLeaveTheLineWithAStandInForMinusInfinityOutUnderAnAlgorithmToo() throws IOException {
        String facts =
                "\"mask\":[1,1],\"group\":\"g\",\"proximal_log_probs\":[-0.5,-0.4],\"old_log_probs\":[-0.5,-0.4],";
        int exit = run(
                List.of(
                        "{\"id\":\"a\"," + facts + "\"reward\":1,\"behavior_log_probs\":[-0.5,-9999.0]}",
                        "{\"id\":\"b\"," + facts + "\"reward\":0,\"behavior_log_probs\":[-0.5,-0.3]}"),
                "--algorithm",
                "default");

        assertThat(exit).isEqualTo(1);
        assertThat(err.toString()).contains(":1: behavior_log_probs[1] must be at least -350.0");
        assertThat(out.toString()).contains("1 sequences, 2 tokens left to train on; 1 lines left out");
    }

    @Test
    void shouldRefuseALoneBoundBelowOneOfASignedDivergence() throws IOException {
        assertThat(run(List.of(ON_POLICY), "--preset", "decoupled_geo_rs", "--set", "rs_threshold=0.01"))
                .isEqualTo(2);
        assertThat(err.toString())
                .contains("rollout_rs_threshold=0.01 for seq_mean_k1: a bound u alone means the ratios from 1/u to u")
                .contains("lower_upper");
    }

    /** Two samples of one prompt, rewarded 1 and 0; the first has a token at a ratio of e. */
    private static final List<String> GROUP = List.of("""
            {"id":"a","mask":[1,1],"group":"g","reward":1,"behavior_log_probs":[-2.0,-1.0],"proximal_log_probs":[-1.0,-1.0]}""", """
            {"id":"b","mask":[1,0],"group":"g","reward":0,"behavior_log_probs":[-1.0,null],"proximal_log_probs":[-1.0,null]}""");

    @Test
    void shouldRunEveryStageOfAnAlgorithm() throws IOException {
        int exit = run(
                GROUP,
                "--algorithm",
                "token_tis",
                "--metrics",
                folder.resolve("m.json").toString());

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(corrected().get(0).toString())
                .isEqualTo("{\"id\":\"a\",\"mask\":[1,1],\"masked_tokens\":0,\"advantage\":0.5,\"weights\":[2.0,1.0]}");
        assertThat(corrected().get(1).get("advantage").asDouble()).isEqualTo(-0.5);
        JsonNode metrics = new ObjectMapper().readTree(folder.resolve("m.json").toFile());
        assertThat(metrics.get("token_tis.tokens_acted").asInt()).isEqualTo(1);
        assertThat(metrics.get("step_scale").asDouble()).isEqualTo(1);
        assertThat(out.toString())
                .contains("weights compare proximal with behavior")
                .contains("no versions in the file")
                .contains("2 sequences, 3 tokens left to train on; 0 lines left out");
    }

    @Test
    void shouldMaskByVersionsAndSayWhichStageDid() throws IOException {
        List<String> versioned = List.of(
                GROUP.get(0).replace("\"reward\"", "\"versions\":[3,3],\"reward\""),
                GROUP.get(1).replace("\"reward\"", "\"versions\":[9,9],\"reward\""));
        int exit = run(versioned, "--algorithm", "token_tis", "--set", "staleness.max_versions=4", "--version", "9");

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(corrected().get(0).get("masked_by").asText()).isEqualTo("staleness");
        assertThat(corrected().get(0).get("mask").toString()).isEqualTo("[0,0]");
        assertThat(corrected().get(1).has("masked_by")).isFalse();
    }

    @Test
    void shouldCompareTheSameUnderAPresetAndUnderTheAlgorithmOfItsName() throws IOException {
        run(
                GROUP.stream()
                        .map(line -> line.replaceAll("\"group\":\"g\",\"reward\":.,", ""))
                        .toList(),
                "--preset",
                "decoupled_token_is");
        List<JsonNode> preset = corrected();
        run(GROUP, "--algorithm", "decoupled_token_is");

        assertThat(corrected())
                .extracting(line -> line.get("weights").toString())
                .containsExactlyElementsOf(preset.stream()
                        .map(line -> line.get("weights").toString())
                        .toList());
    }

    @Test
    void shouldSayWhatAStageLacks() throws IOException {
        assertThat(run(GROUP, "--algorithm", "token_tis", "--set", "advantage.kind=remax"))
                .isEqualTo(1);
        assertThat(err.toString())
                .contains(":1: greedy_reward is missing; a stage of the algorithm reads rewards of greedy answers");
        assertThat(run(GROUP, "--algorithm", "nothing")).isNotZero();
        assertThat(err.toString()).contains("--algorithm nothing: variant must be one of default, ");
        assertThat(run(GROUP, "--algorithm", "m2po", "--ratio", "full")).isEqualTo(2);
        assertThat(run(GROUP, "--preset", "disabled", "--algorithm", "m2po")).isEqualTo(2);
        assertThat(run(GROUP)).isEqualTo(2);
    }

    @Test
    void shouldRefuseNumbersThatOnlyLookRightWhenTheyWrap() throws IOException {
        String two64 = "18446744073709551617"; // 1 in the lowest 64 bits
        int exit = run(
                List.of(
                        ON_POLICY,
                        ON_POLICY.replace("\"b\"", "\"c\"").replace("[1]", "[" + two64 + "]"),
                        ON_POLICY.replace("\"b\"", "\"d\"").replace("\"mask\":[1]", "\"mask\":[0],\"mask\":[1]"),
                        ON_POLICY.replace("\"b\"", "\"e\"").replace("-0.5", "-1e400"),
                        ON_POLICY.replace("\"b\"", "\"f\"").replace("[1]", "[".repeat(2000))),
                "--preset",
                "decoupled_k3_rs_token_tis");
        assertThat(exit).isEqualTo(1);
        assertThat(err.toString())
                .contains(":2: mask[0] must be 0 or 1: " + two64)
                .contains(":3: not JSON: Duplicate field 'mask'")
                .contains(":4: behavior_log_probs[0] must be a finite number")
                .contains(":5: not JSON");
        assertThat(corrected()).hasSize(1);
    }

    @Test
    void shouldRefuseAlgorithmsFilesWhoseFieldsAreOfAnotherKind() throws IOException {
        String line =
                "{\"id\":\"%s\",\"mask\":[1],\"reward\":1,\"behavior_log_probs\":[-1],\"proximal_log_probs\":[-1],"
                        + "\"old_log_probs\":[-1]%s}";
        run(
                List.of(
                        line.formatted("a", ",\"versions\":[18446744073709551617]"),
                        line.formatted("b", ",\"group\":7"),
                        line.formatted("c", ",\"reward_components\":[1]")),
                "--algorithm",
                "grpo");
        assertThat(err.toString())
                .contains("must be a whole number from 0 to 2147483647: 18446744073709551617")
                .contains("group must be a text: 7")
                .contains("reward_components must be numbers by name: [1]");
    }

    @Test
    void shouldRefuseADeviceWithoutEndAndWhatIsNoText() throws IOException {
        assumeTrue(Files.exists(Path.of("/dev/zero")));
        Files.write(folder.resolve("bytes"), new byte[] {(byte) 0xff, (byte) 0xfe});
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        for (String in : List.of("/dev/zero", folder.resolve("bytes").toString())) {
            assertThat(command.execute(
                            "correct",
                            "--in",
                            in,
                            "--out",
                            folder.resolve("out").toString(),
                            "--preset",
                            "decoupled_k3_rs_token_tis"))
                    .isEqualTo(1);
        }
        assertThat(err.toString())
                .contains(
                        "/dev/zero: line 1 has more than 67108864 characters; give a file with one JSON object per line")
                .contains("bytes is not UTF-8 text after line 0");
        assertThat(folder.resolve("out")).doesNotExist();
    }
}
