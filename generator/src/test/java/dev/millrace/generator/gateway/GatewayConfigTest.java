package dev.millrace.generator.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.api.Test;

class GatewayConfigTest {

    private static GatewayConfig with(String host, String tokenVariable) {
        GatewayConfig d = GatewayConfig.defaults();
        return new GatewayConfig(
                d.enabled(),
                host,
                d.port(),
                d.publicUrl(),
                tokenVariable,
                d.tls(),
                d.sessions(),
                d.calls(),
                d.bodyBytes(),
                d.turns(),
                d.idleMs(),
                d.limitMs(),
                d.turnTimeoutMs(),
                d.claimWaitMs(),
                d.sampling(),
                d.prefixCacheMb());
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
        GatewayToken token = GatewayToken.of(with("0.0.0.0", "TOKEN"), Map.of("TOKEN", "0123456789abcdef"));
        assertThat(token.lets("Bearer 0123456789abcdef")).isTrue();
        assertThat(token.lets("Bearer 0123456789abcdeg")).isFalse();
        assertThat(token.lets(null)).isFalse();
        assertThat(GatewayToken.of(GatewayConfig.defaults(), Map.of()).lets(null))
                .isTrue();
        assertThatThrownBy(() -> GatewayToken.of(with("0.0.0.0", "TOKEN"), Map.of("TOKEN", "short")))
                .hasMessageContaining("holds 5 characters; a token has at least 16");
    }
}
