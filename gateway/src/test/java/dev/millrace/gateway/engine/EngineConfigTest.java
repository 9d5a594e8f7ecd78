package dev.millrace.gateway.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.engine.EngineConfig.EngineDtype;
import dev.millrace.gateway.engine.EngineConfig.EngineKind;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.schemas.SamplingParameters;
import java.util.Map;
import org.junit.jupiter.api.Test;

class EngineConfigTest {
    private static EngineConfig of(EngineKind kind, String url, String directory, EngineLogProbs logProbs) {
        return new EngineConfig(
                kind, url, "", "", directory, "", EngineDtype.BF16, logProbs, 32, 0.25, 2, 1000, 1000, 1000);
    }

    private static EngineConfig vllm(EngineLogProbs logProbs) {
        return of(EngineKind.VLLM, "http://127.0.0.1:8000", "/shared", logProbs);
    }

    private static SamplingParameters sampling(double temperature, int topK, double topP, double minP) {
        return new SamplingParameters(temperature, topK, topP, 8, 1L, false, 0, minP, false);
    }

    @Test
    void shouldRefuseWhatIsSaidOfNobody() {
        assertThatThrownBy(() -> of(EngineKind.OWN, "http://127.0.0.1:8000", "", EngineLogProbs.RAW))
                .hasMessageContaining("set engine.kind to vllm or sglang");
        assertThatThrownBy(() -> of(EngineKind.VLLM, "http://127.0.0.1:8000", "", EngineLogProbs.RAW))
                .hasMessageStartingWith("directory must be");
    }

    @Test
    void shouldRefuseAnAddressThatIsNotTheEngines() {
        for (String url : new String[] {"", "127.0.0.1:8000", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"}) {
            assertThatThrownBy(() -> of(EngineKind.VLLM, url, "/shared", EngineLogProbs.RAW))
                    .hasMessageContaining("'" + url + "'");
        }
        assertThat(of(EngineKind.VLLM, "https://engines.example/one", "/shared", EngineLogProbs.RAW)
                        .url())
                .isEqualTo("https://engines.example/one");
    }

    @Test
    void shouldRefuseSamplingWhoseLogProbsWouldLie() {
        assertThat(vllm(EngineLogProbs.RAW).refusal(sampling(1, 0, 1, 0))).isEmpty();
        assertThat(vllm(EngineLogProbs.PROCESSED).refusal(sampling(0.7, 0, 1, 0)))
                .isEmpty();
        assertThat(vllm(EngineLogProbs.RAW).refusal(sampling(0.7, 0, 1, 0)))
                .hasValueSatisfying(refusal ->
                        assertThat(refusal).startsWith("temperature must be 1").contains("processed_logprobs"));
        assertThat(vllm(EngineLogProbs.PROCESSED).refusal(sampling(1, 20, 1, 0)))
                .hasValueSatisfying(refusal -> assertThat(refusal).startsWith("top_k must be 0"));
        assertThat(vllm(EngineLogProbs.PROCESSED).refusal(sampling(1, 0, 0.9, 0)))
                .hasValueSatisfying(refusal -> assertThat(refusal).startsWith("top_p must be 1"));
        assertThat(vllm(EngineLogProbs.PROCESSED).refusal(sampling(1, 0, 1, 0.1)))
                .hasValueSatisfying(refusal -> assertThat(refusal).startsWith("min_p must be 0"));
        assertThat(EngineConfig.defaults().refusal(sampling(0.7, 20, 0.9, 0))).isEmpty();
    }

    @Test
    void shouldRefuseSettingsOfAGeneratorThatSayNothingOfAnotherEngine() {
        GeneratorConfig grouped = new GeneratorConfig(
                "g",
                4,
                1,
                16,
                1,
                1,
                1,
                Precision.F32,
                WeightPlacement.FED,
                WeightUpdate.GROUP_END,
                CacheOnSwap.RECOMPUTE,
                25,
                0,
                0,
                100,
                0,
                0,
                1);
        assertThatThrownBy(() -> vllm(EngineLogProbs.RAW).require(grouped))
                .hasMessage(
                        "weight_update must be in_flight or drain with engine.kind=vllm, which is updated as a whole and knows"
                                + " of no groups: group_end");
        EngineConfig.defaults().require(grouped);
    }

    @Test
    void shouldRefuseAKeyThatIsNotThere() {
        EngineConfig config = new EngineConfig(
                EngineKind.SGLANG,
                "http://127.0.0.1:30000",
                "ENGINE_KEY",
                "",
                "/shared",
                "",
                EngineDtype.BF16,
                EngineLogProbs.RAW,
                32,
                0.25,
                2,
                1000,
                1000,
                1000);
        assertThatThrownBy(() -> RemoteEngines.key(config, Map.of())).hasMessageContaining("ENGINE_KEY");
        assertThat(RemoteEngines.key(config, Map.of("ENGINE_KEY", "secret"))).isEqualTo("secret");
        assertThat(RemoteEngines.key(vllm(EngineLogProbs.RAW), Map.of())).isNull();
    }
}
