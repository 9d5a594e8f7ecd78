package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.HttpListener.HttpToken;
import dev.millrace.policy.decoder.Precision;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GatewayConfigTest {

    private static GatewayConfig with(String host, String tokenVariable) {
        return with(host, tokenVariable, GatewayConfig.defaults().prefixCacheMb());
    }

    private static GatewayConfig with(String host, String tokenVariable, int prefixCacheMb) {
        GatewayConfig d = GatewayConfig.defaults();
        return new GatewayConfig(
                d.enabled(),
                host,
                d.port(),
                d.publicUrl(),
                tokenVariable,
                d.sessions(),
                d.calls(),
                d.bodyBytes(),
                d.bodyMs(),
                d.bodyBytesPerSecond(),
                d.turns(),
                d.idleMs(),
                d.limitMs(),
                d.turnTimeoutMs(),
                d.claimWaitMs(),
                d.sampling(),
                prefixCacheMb);
    }

    @Test
    void shouldRefuseToListenToTheWorldWithoutAToken() {
        assertThatThrownBy(() -> with("0.0.0.0", ""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "host must be on loopback, such as 127.0.0.1, where token_variable is empty: '0.0.0.0'");
        assertThat(with("::1", "").host()).isEqualTo("::1");
        assertThat(with("0.0.0.0", "TOKEN").tokenVariable()).isEqualTo("TOKEN");
    }

    @Test
    void shouldLetInWhoHasTheTokenAndNobodyElse() {
        HttpToken token = HttpToken.of("gateway.token_variable", "TOKEN", Map.of("TOKEN", "0123456789abcdef"));
        assertThat(token.lets("Bearer 0123456789abcdef")).isTrue();
        assertThat(token.lets("Bearer 0123456789abcdeg")).isFalse();
        assertThat(token.lets(null)).isFalse();
        assertThat(HttpToken.of("gateway.token_variable", "", Map.of()).lets(null))
                .isTrue();
        assertThatThrownBy(() -> HttpToken.of("gateway.token_variable", "TOKEN", Map.of("TOKEN", "short")))
                .hasMessageStartingWith("gateway.token_variable is TOKEN, and")
                .hasMessageContaining("holds 5 characters; a token has at least 16");
    }

    @Test
    void shouldKeepConversationsUnlessTheEngineIsTooCoarseToGoOnWithThem() {
        GatewayConfig defaults = GatewayConfig.defaults();
        assertThat(defaults.prefixBytes(Precision.F32)).isEqualTo(256 << 20);
        assertThat(defaults.prefixBytes(Precision.BF16)).isZero();
        assertThat(defaults.prefixBytes(Precision.INT8)).isZero();
        assertThat(with("::1", "", 0).prefixBytes(Precision.INT8)).isZero();
        assertThat(with("::1", "", 64).prefixBytes(Precision.F32)).isEqualTo(64 << 20);
        assertThatThrownBy(() -> with("::1", "", 64).prefixBytes(Precision.INT8))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "prefix_cache_mb must be 0, or -1 for what follows, where generator.precision is int8: 64;");
        assertThatThrownBy(() -> with("::1", "", -2)).hasMessageContaining("from -1 to 1048576: -2");
    }
}
