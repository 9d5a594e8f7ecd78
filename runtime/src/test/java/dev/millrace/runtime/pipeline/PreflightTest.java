package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class PreflightTest {

    @Test
    void shouldFindEverythingThatTheDefaultRunNeeds() {
        List<PreflightCheck> checks = new Preflight(config(), () -> "word", AccountRights.roles(config())).run();
        assertThat(checks).extracting(PreflightCheck::outcome).containsOnly(PreflightCheck.Outcome.OK);
        assertThat(checks)
                .extracting(PreflightCheck::subject)
                .containsExactly("device", "model", "memory", "data", "tokenizer", "algorithm", "registry", "cluster");
    }

    @Test
    void shouldSayWhichDeviceThisBuildCannotUse() {
        PreflightCheck device = run(config("run.device=cuda:0")).get("device");
        assertThat(device.outcome()).isEqualTo(PreflightCheck.Outcome.FAILED);
        assertThat(device.sentence()).contains("cuda:0", "-Pgpu");
    }

    @Test
    void shouldAskForTheRunWhoseRightsAreTried() {
        PreflightCheck cluster =
                run(config("run.bootstrap_servers=localhost:1")).get("cluster");
        assertThat(cluster.outcome()).isEqualTo(PreflightCheck.Outcome.FAILED);
        assertThat(cluster.sentence()).contains("run.id is empty", "--set run.id=NAME");
    }

    @Test
    void shouldTryNothingOfAClusterThatDoesNotAnswer() {
        Map<String, PreflightCheck> checks =
                run(config("run.bootstrap_servers=localhost:1", "run.id=r", "topics.timeout_ms=1000"));
        assertThat(checks.get("cluster").outcome()).isEqualTo(PreflightCheck.Outcome.FAILED);
        assertThat(checks.get("cluster").sentence()).contains("localhost:1");
        assertThat(List.of("rights", "topics", "transactions", "record size", "clock", "reading", "run"))
                .allSatisfy(
                        subject -> assertThat(checks.get(subject).outcome()).isEqualTo(PreflightCheck.Outcome.SKIPPED));
    }

    private static Map<String, PreflightCheck> run(MillraceConfig config) {
        return new Preflight(config, () -> "word", AccountRights.roles(config))
                .run().stream().collect(Collectors.toMap(PreflightCheck::subject, check -> check));
    }

    private static MillraceConfig config(String... settings) {
        ConfigLayers layers = new ConfigLayers();
        for (String setting : settings) {
            layers.set(setting);
        }
        return layers.resolve();
    }
}
